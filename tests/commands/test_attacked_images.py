"""What is kept of a stopped attack: whole batches, and nothing else."""

from __future__ import annotations

from pathlib import Path

import torch

from kattn_cli.commands.attack.measure import AttackedImages


def add(record: AttackedImages, batch: int, first: int, right: list[int]) -> None:
    answers = torch.tensor(right, dtype=torch.bool)
    norms = {norm: torch.full((len(right),), 0.25, dtype=torch.float64) for norm in ("linf", "l2", "l1")}
    record.append(batch, first, 2.0, clean=answers, top1=answers, top5=~answers, hit=~answers, **norms)


def test_rows_of_images(tmp_path: Path) -> None:
    record = AttackedImages(tmp_path / "new" / "pgd.csv")
    assert (record.images, record.done) == (0, set())
    add(record, 0, 0, [1, 0])
    add(record, 1, 2, [1])
    table = AttackedImages(record.path).table()
    assert table["image"].tolist() == [0, 1, 2]
    assert table["top1"].tolist() == [1, 0, 1]
    assert table["top5"].tolist() == [0, 1, 0]
    assert table["seconds"].tolist() == [1, 1, 2]
    assert table["linf"].tolist() == [0.25] * 3


def test_a_half_batch_is_forgotten(tmp_path: Path) -> None:
    record = AttackedImages(tmp_path / "pgd.csv")
    add(record, 0, 0, [1, 0, 1])
    add(record, 1, 3, [1, 1, 1])
    text = record.path.read_text(encoding="utf-8")
    for cut in (text.rfind("\n", 0, -1) + 1, text.rfind("\n", 0, -1) + 5):
        record.path.write_text(text[:cut], encoding="utf-8")
        kept = AttackedImages(record.path)
        assert (kept.images, kept.done) == (3, {0})
        add(kept, 1, 3, [0, 0, 0])
        assert kept.table()["top1"].tolist() == [1, 0, 1, 0, 0, 0]


def test_a_batch_written_twice_counts_once(tmp_path: Path) -> None:
    """As by two processes that attack the same run."""
    one, other = AttackedImages(tmp_path / "pgd.csv"), AttackedImages(tmp_path / "pgd.csv")
    add(one, 0, 0, [1, 0])
    add(other, 0, 0, [1, 0])
    kept = AttackedImages(one.path)
    assert (kept.images, kept.table()["image"].tolist()) == (2, [0, 1])


def test_clear(tmp_path: Path) -> None:
    record = AttackedImages(tmp_path / "pgd.csv")
    add(record, 0, 0, [1, 0])
    record.clear()
    assert (record.images, record.done, record.path.exists()) == (0, set(), False)
