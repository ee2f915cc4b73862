"""ListOps: the grammar, the values against another evaluator, the cache, and Long-Range Arena's own files."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kattn_cli.data.sequences import SequenceSplit
from kattn_cli.data.sets.listops import ListOps, data_set, generate
from kattn_cli.data.sets.listops.expressions import END, TOKENS, draw_sequences, longest_possible, read_tokens, spelled
from kattn_cli.errors import DataError

SMALL: dict[str, Any] = {"min_length": 5, "max_length": 40, "train": 300, "choose_by": 40, "test": 50}
FUNCTIONS: dict[str, Callable[[list[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda values: int(statistics.median(values)),
    "[SM": lambda values: sum(values) % 10,
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "cache"))


def evaluated(text: str) -> int:
    """A stack machine over the written tokens, which knows nothing of trees."""
    stack: list[str | int] = []
    for token in text.split():
        if token != "]":
            stack.append(token if token[0] == "[" else int(token))
            continue
        values: list[int] = []
        while isinstance(top := stack.pop(), int):
            values.append(top)
        stack.append(FUNCTIONS[top](values))
    (value,) = stack
    assert isinstance(value, int)
    return value


def written(split: SequenceSplit) -> list[str]:
    """The sequences as text."""
    return [spelled(row[:length]) for row, length in zip(split.values.numpy(), split.lengths.tolist(), strict=True)]


def in_pairs(text: str) -> str:
    """With Long-Range Arena's round brackets: one pair for the operator and each entry, one for the end."""
    stack: list[list[str]] = [[]]
    for token in text.split():
        if token[0] == "[":
            stack.append([token])
        elif token == "]":
            operator, *entries = stack.pop()
            inner = "( " * (len(entries) + 1) + operator + "".join(f" {entry} )" for entry in entries) + " ] )"
            stack[-1].append(inner)
        else:
            stack[-1].append(token)
    return stack[0][0]


def test_values_agree_with_another_evaluator_on_10_000_expressions() -> None:
    data = ListOps(min_length=3, max_length=200, train=10_000, choose_by=1, test=1).load()["train"]
    texts = written(data)
    assert [evaluated(text) for text in texts] == data.labels.tolist()
    assert len(set(texts)) == 10_000
    assert max(text.count("[") for text in texts) > 20


def test_evaluated_by_hand() -> None:
    assert evaluated("[MAX 2 9 [MIN 4 7 ] 0 ]") == 9
    assert evaluated("[SM 9 [MED 1 4 ] [MED 8 3 5 ] ]") == (9 + 2 + 5) % 10
    assert in_pairs("[MAX 2 9 [MIN 4 7 ] 0 ]") == "( ( ( ( ( [MAX 2 ) 9 ) ( ( ( [MIN 4 ) 7 ) ] ) ) 0 ) ] )"


def test_long_range_arenas_lengths() -> None:
    drawn = draw_sequences(np.random.default_rng(0), 3000, min_length=500, max_length=2000, max_depth=10, max_args=10)
    assert 500 < drawn.lengths.min() < 600
    assert 1800 < drawn.lengths.max() < 2000
    ends = drawn.lengths.cumsum()
    for start, end, value in list(zip(ends - drawn.lengths, ends, drawn.values, strict=True))[:50]:
        text = spelled(drawn.tokens[start:end])
        assert evaluated(text) == value
        opened = np.cumsum([(token[0] == "[") - (token == "]") for token in text.split()])
        assert opened.max() <= 9


def test_the_shapes_are_as_likely_as_they_should_be() -> None:
    drawn = draw_sequences(np.random.default_rng(0), 200_000, min_length=0, max_length=9, max_depth=2, max_args=4)
    counts = np.bincount(drawn.lengths, minlength=7)[[1, 4, 5, 6]] / 200_000
    np.testing.assert_allclose(counts, [3 / 4, 1 / 12, 1 / 12, 1 / 12], atol=0.004)
    first = drawn.tokens[drawn.lengths.cumsum() - drawn.lengths]
    kinds = np.bincount(first, minlength=15) / 200_000
    np.testing.assert_allclose(kinds[:10], 0.075, atol=0.003)
    np.testing.assert_allclose(kinds[10:14], 1 / 16, atol=0.003)
    assert len(drawn.lengths) == 200_000
    assert drawn.lengths.max() == longest_possible(2, 4) == 6


def test_splits() -> None:
    source = ListOps(**SMALL)
    facts = source.facts()
    assert (facts.classes, facts.seq_len, facts.vocabulary, facts.own_validation) == (10, 40, 15, True)
    splits = source.load()
    assert {name: len(split) for name, split in splits.items()} == {"train": 300, "validation": 40, "test": 50}
    texts = [text for split in splits.values() for text in written(split)]
    assert len(set(texts)) == 390
    assert {len(text.split()) for text in texts} <= set(range(6, 40))
    labels = torch.cat([split.labels for split in splits.values()])
    assert set(labels.tolist()) == set(range(10))
    assert [evaluated(text) for text in texts] == labels.tolist()
    for split in splits.values():
        assert split.values.dtype == torch.uint8
        assert split.labels.dtype == split.lengths.dtype == torch.int64
        for row, length in zip(split.values, split.lengths.tolist(), strict=True):
            assert row[length - 1] == END
            assert not row[length:].any()


def test_the_same_options_give_the_same_data() -> None:
    one, other = (generate.generate(ListOps(**SMALL, seed=seed).wanted) for seed in (0, 0))
    assert one.tokens.tobytes() == other.tokens.tobytes()
    assert one.values.tobytes() == other.values.tobytes()
    seeded = generate.generate(ListOps(**SMALL, seed=1).wanted)
    assert seeded.tokens.tobytes() != one.tokens.tobytes()
    assert spelled(one.tokens[: one.lengths[0]]) == "[SM 5 0 5 2 9 3 ]"


def test_kept_and_made_again_where_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ListOps(**SMALL)
    (check,) = source.files()
    assert check.status == "not generated yet"
    assert source.missing() == ""
    source.fetch()
    assert [found.status for found in source.files()] == ["ok"]
    assert check.path.parent == source.places()[0]
    before = source.load()
    whole = check.path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:500] + bytes([whole[500] ^ 1]) + whole[501:], b""):
        check.path.write_bytes(damaged)
        assert torch.equal(source.load()["train"].values, before["train"].values)
        assert check.path.read_bytes() == whole
    monkeypatch.setattr(data_set, "generate", lambda wanted: pytest.fail("generated again"))
    after = source.load()
    for name, split in before.items():
        assert torch.equal(split.values, after[name].values)
        assert torch.equal(split.labels, after[name].labels)
    for changed in ({"seed": 1}, {"max_length": 41}, {"test": 51}, {"max_depth": 9}, {"max_args": 9}):
        assert ListOps(**(SMALL | changed)).files()[0].path != check.path


def test_too_few_sequences_of_that_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "_IN_VAIN", 100_000)
    with pytest.raises(DataError) as caught:
        ListOps(min_length=3, max_length=5, train=1000, choose_by=1, test=1).load()
    assert str(caught.value).startswith(
        "listops: found 400 different sequences of more than 3 and fewer than 5 tokens, not 1,002, and no more among "
        "the last 100,000 trees; give other data.min_length"
    )


@pytest.mark.parametrize("wrong", [{"min_length": 1999}, {"max_depth": 3}, {"min_length": 5000}, {"max_depth": 1}])
def test_lengths_that_no_tree_has(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^data.max_length: no sequence has more than"):
        ListOps(**wrong)


def test_long_range_arenas_own_files(tmp_path: Path) -> None:
    made = ListOps(**SMALL).load()
    for name, part in zip(("train", "val", "test"), made.values(), strict=True):
        lines = [f"{in_pairs(text)}\t{label}" for text, label in zip(written(part), part.labels.tolist(), strict=True)]
        (tmp_path / f"basic_{name}.tsv").write_text("\r\n".join(["Source\tTarget", *lines, ""]), newline="")
    source = ListOps(root=str(tmp_path))
    assert source.facts().seq_len == 2000
    assert source.missing() == ""
    assert [(check.path.name, check.status) for check in source.files()] == [
        ("basic_train.tsv", "ok"), ("basic_val.tsv", "ok"), ("basic_test.tsv", "ok"),
    ]  # fmt: skip
    for which, split in source.load().items():
        assert torch.equal(split.values, made[which].values)
        assert torch.equal(split.lengths, made[which].lengths)
        assert torch.equal(split.labels, made[which].labels)
    (tmp_path / "basic_val.tsv").unlink()
    assert source.missing().startswith(f"there is no file {tmp_path / 'basic_val.tsv'}; without root it is generated")
    with pytest.raises(DataError, match=r"^listops: there is no file .*basic_val.tsv"):
        source.load()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", ": does not begin with the line Source<tab>Target"),
        ("Source\tTarget\n", ": has no sequences"),
        ("Source\tTarget\n[MAX 1 2 ]\t2\n[MAX 1 2", ", line 3: is not one list, or its brackets do not match"),
        ("Source\tTarget\n[MAX 1 ] ]\t2\n", ", line 2: is not one list, or its brackets do not match"),
        ("Source\tTarget\n[MAX 1 2 ]\n", ", line 2: has no value 0 … 9 after a tab; it is cut short or no line of"),
        ("Source\tTarget\n[MAX 1 2 ]\t10\n", ", line 2: has no value 0 … 9 after a tab"),
        ("Source\tTarget\n[AVG 1 2 ]\t1\n", ", line 2: has something that is none of 0 1 2 3 4 5 6 7 8 9 [MIN [MAX"),
        ("Source\tTarget\n[MAX 12 2 ]\t1\n", ", line 2: has something that is none of 0 1 2"),
        ("Source\tTarget\n[MAX 1 2 3 4 5 6 7 8 ]\t8\n", ", line 2: has 10 tokens, more than data.max_length = 9"),
    ],
)
def test_bad_files(content: str, fault: str, tmp_path: Path) -> None:
    for name in ("train", "val", "test"):
        (tmp_path / f"basic_{name}.tsv").write_text(content)
    with pytest.raises(DataError) as caught:
        ListOps(root=str(tmp_path), max_length=9).load()
    assert str(caught.value).startswith(f"{tmp_path / 'basic_train.tsv'}{fault}")


def test_tokens() -> None:
    assert " ".join(TOKENS) == "0 1 2 3 4 5 6 7 8 9 [MIN [MAX [MED [SM ]"
    assert read_tokens(b"( ( ( [SM 9 ) 3 ) ] )").tolist() == [13, 9, 3, 14]
    assert read_tokens(b"7").tolist() == [7]
