"""Pairs of texts as Long-Range Arena's Retrieval files have them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from kattn_cli.data.sets import aan
from kattn_cli.data.sets.aan import Aan
from kattn_cli.errors import DataError

LINES = {
    "train": b"1.0\tP01-1\tP02-2\tb'one \\n two'\tb'three'\n0.0\tA\tB\tfour\tcaf\xc3\xa9 \"quoted'\n1\tC\tD\tx\ty\n",
    "eval": b"0\tA\tB\tab\tabc",
    "test": b"1.0\tA\tB\tabcdef\ta\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "kattn"))
    for split, text in LINES.items():
        (tmp_path / f"new_aan_pairs.{split}.tsv").write_bytes(text)
    return tmp_path


def text(values: torch.Tensor, length: torch.Tensor) -> bytes:
    return values[: int(length)].numpy().tobytes()


def fault(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        Aan(root=str(folder)).load()
    return str(caught.value)


def test_texts_as_they_lie(folder: Path) -> None:
    source = Aan(root=str(folder))
    assert source.missing() == ""
    facts = source.facts()
    assert (facts.classes, facts.seq_len, facts.vocabulary, facts.pairs) == (2, 4000, 256, True)
    assert facts.own_validation
    splits = source.load()
    assert [len(splits[name]) for name in ("train", "validation", "test")] == [3, 1, 1]
    train = splits["train"]
    assert train.values.shape == (3, 2, 4000)
    assert train.values.dtype == torch.uint8
    assert train.labels.tolist() == [1, 0, 1]
    assert text(train.values[0, 0], train.lengths[0, 0]) == b"b'one \\n two'"
    assert text(train.values[1, 1], train.lengths[1, 1]) == b"caf\xc3\xa9 \"quoted'"
    assert train.lengths.tolist() == [[13, 8], [4, 14], [1, 1]]
    assert not train.values[0, 0, 13:].any()


def test_batches_with_masks(folder: Path) -> None:
    batch, labels = Aan(root=str(folder)).load()["train"].take(torch.tensor([0, 2]))
    assert batch.values.shape == (2, 2, 13)
    assert batch.mask is not None
    assert batch.mask.sum(-1).tolist() == [[13, 8], [1, 1]]
    assert labels.tolist() == [1, 1]


@pytest.mark.parametrize("seq_len", [3, 4])
def test_longer_texts_are_cut_at_the_end(folder: Path, seq_len: int) -> None:
    test = Aan(root=str(folder), seq_len=seq_len).load()["test"]
    assert test.values.tolist() == [[list(b"abcdef"[:seq_len]), [97] + [0] * (seq_len - 1)]]
    assert test.lengths.tolist() == [[seq_len, 1]]


def test_read_once_unless_the_file_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Aan(root=str(folder)).load()["train"]
    read = aan._pairs
    monkeypatch.setattr(aan, "_pairs", lambda *_: pytest.fail("read again"))
    again = Aan(root=str(folder)).load()["train"]
    assert torch.equal(again.values, before.values)
    assert torch.equal(again.lengths, before.lengths)
    monkeypatch.setattr(aan, "_pairs", read)
    path = folder / "new_aan_pairs.train.tsv"
    path.write_bytes(b"0\tA\tB\tnew\ttext\n")
    os.utime(path, ns=(1, 1))
    assert Aan(root=str(folder)).load()["train"].labels.tolist() == [0]


def test_what_is_looked_at_is_mapped_and_not_changed_on_disk(folder: Path) -> None:
    split = Aan(root=str(folder)).load()["test"]
    split.values[0, 0, 0] = 7
    assert Aan(root=str(folder)).load()["test"].values[0, 0, 0] == ord("a")


def test_a_damaged_copy_is_made_again(folder: Path) -> None:
    before = {name: split.values.clone() for name, split in Aan(root=str(folder)).load().items()}
    copies = sorted((folder / "kattn" / "aan").glob("*.npy"))
    assert len(copies) == 3
    for copy, size in zip(copies, (0, 60, 4000), strict=True):
        copy.write_bytes(copy.read_bytes()[:size])
    np.save(copies[0], np.zeros(3))
    again = Aan(root=str(folder)).load()
    assert all(torch.equal(again[name].values, values) for name, values in before.items())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"1\tA\tB\tone text", "has 4 columns; expected 5 with tabs between: label, two ids, two texts"),
        (b"", "has 1 columns; expected 5 with tabs between: label, two ids, two texts"),
        (b"2.0\tA\tB\tx\ty", 'expected a label 0 or 1 in the first column, not "2.0"'),
        (b"label\tid1\tid2\ttext1\ttext2", 'expected a label 0 or 1 in the first column, not "label"'),
        (b"1\tA\tB\t\ty", "the first text is empty"),
        (b"1\tA\tB\tx\t", "the second text is empty"),
    ],
)
def test_bad_lines_are_named(folder: Path, line: bytes, said: str) -> None:
    path = folder / "new_aan_pairs.eval.tsv"
    path.write_bytes(b"0\tA\tB\tx\ty\n" + line + b"\n")
    assert fault(folder) == f"{path}, line 2: {said}"
    assert not list((folder / "kattn" / "aan").glob("new_aan_pairs.eval*"))


def test_empty_and_missing_files(folder: Path) -> None:
    path = folder / "new_aan_pairs.test.tsv"
    path.write_bytes(b"")
    assert fault(folder) == f"{path}: is empty"
    path.unlink()
    assert fault(folder).startswith(f"aan: there is no file {path}; unpack lra_release.gz")
    assert [check.status for check in Aan(root=str(folder)).files()] == ["no checksum known"] * 2 + ["missing"]
    with pytest.raises(DataError, match=r"aan: cannot be fetched; unpack lra_release\.gz"):
        Aan(root=str(folder)).fetch()
