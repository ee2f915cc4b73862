"""Associative recall: sequences by the rules of the task, splits of their own, and options that go together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from command_line import kattn

from kattn_cli.data.sequences import Padded, SequenceSplit
from kattn_cli.data.sets.recall import Recall
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import SequenceSection
from kattn_cli.runs.bits import unpacked
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.tasks import load_data, objective_of, source_of
from kattn_cli.training.evaluate import outputs_on

TINY: dict[str, Any] = {"vocabulary": 6, "pairs": 2, "queries": 1, "train": 2000, "choose_by": 5, "test": 4}
RECIPE = """\
name: tiny
data: {name: recall, vocabulary: 8, pairs: 2, train: 64, choose_by: 16, test: 10}
model: {name: MODEL, dim: 8, depth: 1, heads: 2}
attention: softmax
train: {epochs: 1, batch_size: 16, lr: 1e-2, warmup_epochs: 0}
"""


def by_hand(split: SequenceSplit, pairs: int, keys: int) -> Iterator[tuple[dict[int, int], list[int], list[int]]]:
    """Each sequence as its pairs, the keys that it asks for, and its labels."""
    for row, labels in zip(split.values.tolist(), split.labels.tolist(), strict=True):
        stored = dict(zip(row[: 2 * pairs : 2], [value - keys for value in row[1 : 2 * pairs : 2]], strict=True))
        yield stored, row[2 * pairs :], labels


def test_every_label_is_the_value_of_the_key_that_is_asked_for() -> None:
    splits = Recall(**TINY).load()
    assert {name: len(split) for name, split in splits.items()} == {"train": 2000, "validation": 5, "test": 4}
    seen = set()
    for stored, asked, labels in by_hand(splits["train"], pairs=2, keys=3):
        assert len(stored) == 2  # no key twice
        assert len(set(stored.values())) == 2  # nor a value
        assert set(stored.values()) <= {0, 1, 2}
        assert [stored[key] for key in asked] == labels
        seen.add((tuple(stored.items()), *asked))
    assert len(seen) == 3 * 2 * 3 * 2 * 2  # all there are: ordered keys, ordered values, which one is asked


def test_all_keys_are_asked_for_unless_fewer_are_wanted() -> None:
    for stored, asked, _ in by_hand(Recall(vocabulary=20, pairs=5, train=30).load()["train"], pairs=5, keys=10):
        assert sorted(asked) == sorted(stored)
    facts = Recall(vocabulary=20, pairs=5).facts()
    assert (facts.classes, facts.seq_len, facts.vocabulary, facts.queries) == (10, 15, 20, 5)
    assert Recall(vocabulary=20, pairs=5, queries=2).facts().seq_len == 12


def test_the_same_sequences_for_ever() -> None:
    split = Recall(vocabulary=12, pairs=3, train=2, choose_by=2, test=2).load()["test"]
    assert split.values.tolist() == [[0, 8, 4, 11, 3, 6, 0, 4, 3], [0, 11, 3, 7, 1, 10, 0, 3, 1]]
    assert split.labels.tolist() == [[2, 5, 0], [5, 1, 4]]


def test_splits_and_seeds_have_streams_of_their_own() -> None:
    sizes = {"vocabulary": 64, "pairs": 8}
    one, more = Recall(**sizes, train=50, choose_by=50, test=50).load(), Recall(**sizes, train=90, test=50).load()
    assert torch.equal(one["test"].values, more["test"].values)
    rows = [{tuple(row) for row in split.values.tolist()} for split in one.values()]
    assert not rows[0] & rows[1] | rows[0] & rows[2] | rows[1] & rows[2]
    other = Recall(**sizes, train=50, seed=1).load()["train"]
    assert not rows[0] & {tuple(row) for row in other.values.tolist()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary": 7}, "data.vocabulary: half of it are keys, half values, and 7 is odd"),
        ({"vocabulary": 8, "pairs": 5}, "data.pairs: 5 of 4 keys; give data.vocabulary more tokens"),
        ({"pairs": 3, "queries": 4}, "data.queries: 4 of 3 pairs; each key is asked for once at most"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        source_of(SequenceSection(name="recall", **options))


@pytest.fixture
def recipe(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(RECIPE.replace("MODEL", request.param), encoding="utf-8")
    return path


@pytest.mark.parametrize("recipe", ["encoder", "decoder"], indirect=True)
def test_is_trained_evaluated_and_listed(recipe: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = ("--results", tmp_path / "results", "--device", "cpu")
    dry = kattn(capfd, "train", recipe, "--dry-run", *where)
    assert "up to 6 long, a vocabulary of 8, 4 classes for each of the last 2 tokens" in " ".join(dry.out.split())
    assert kattn(capfd, "train", recipe, *where).code == 0
    said = kattn(capfd, "eval", "tiny", *where)
    assert "(20 queries, chance 25.0 %)" in said.out
    (row,) = read_rows(tmp_path / "results" / "tiny" / "0" / "eval.csv")
    assert (row["images"], row["classes"]) == ("20", "4")
    assert float(row["top1"]) == pytest.approx(100 * unpacked(row["correct"], 20).mean())  # a bit for each query
    refused = kattn(capfd, "attack", "tiny", "--pgd", *where)
    assert refused.code == 2
    assert "reads sequences (recall)" in refused.err
    assert "recall" in kattn(capfd, "list", "data").out


class Scores(torch.nn.Module):
    """A model whose logits are a function of the place alone."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def mechanisms(self) -> list[torch.nn.Module]:
        return []

    def experts(self) -> list[torch.nn.Module]:
        return []

    @property
    def device(self) -> torch.device:
        return self.logits.device

    def forward(self, inputs: Padded) -> torch.Tensor:
        return self.logits[: len(inputs.values)]


def test_loss_and_accuracy_are_over_queries_by_hand() -> None:
    options: dict[str, Any] = {"vocabulary": 8, "pairs": 2, "train": 8, "choose_by": 8, "test": 3}
    data = load_data(SequenceSection(name="recall", **options))
    split, objective = data.splits["test"], objective_of(data)
    logits = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))
    losses, right = [], []
    for scores, labels in zip(logits.tolist(), split.labels.tolist(), strict=True):
        for row, label in zip(scores, labels, strict=True):
            losses.append(np.log(np.exp(row).sum()) - row[label])
            right.append(int(np.argmax(row)) == label)
    assert objective.loss(logits, split.labels, 0.0).item() == pytest.approx(np.mean(losses), rel=1e-6)
    assert int(objective.count(split.labels)) == 6
    sums = objective.sums(logits, split.labels).tolist()
    assert objective.measures(sums, 6)["top1"] == pytest.approx(100 * np.mean(right))
    outputs = outputs_on(Scores(logits), split)  # type: ignore[arg-type]
    assert outputs.labels.tolist() == split.labels.flatten().tolist()
    assert outputs.measures().top1 == pytest.approx(100 * np.mean(right))
    assert outputs.measures().images == 6
    smooth = objective.loss(logits, split.labels, 0.1)
    assert smooth.item() == pytest.approx(
        F.cross_entropy(logits.view(6, 4), split.labels.view(6), label_smoothing=0.1).item()
    )
