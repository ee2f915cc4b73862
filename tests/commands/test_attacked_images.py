"""What is kept of a stopped attack: whole batches, and nothing else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings
from kattn_cli.commands.attack.measure import AttackedImages, Protocol, _measure, _row
from kattn_cli.commands.attack.plan import Planned
from kattn_cli.data.images import MemorySplit
from kattn_cli.errors import RunError


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
    assert one.table()["image"].tolist() == other.table()["image"].tolist() == [0, 1]
    kept = AttackedImages(one.path)
    assert (kept.images, kept.table()["image"].tolist()) == (2, [0, 1])


def test_what_another_process_measures_anew_is_not_summed_up(tmp_path: Path) -> None:
    """It has taken away the first batch of this one."""
    one = AttackedImages(tmp_path / "pgd.csv")
    add(one, 0, 0, [1, 0])
    other = AttackedImages(tmp_path / "pgd.csv")
    other.clear()
    words = r"pgd\.csv: another process measures this anew; try again when it is done$"
    with pytest.raises(RunError, match=words):
        one.table()
    add(one, 1, 2, [1])
    with pytest.raises(RunError, match=words):
        one.table()
    add(other, 0, 0, [1, 0])
    assert one.table()["image"].tolist() == [0, 1, 2]


def test_clear(tmp_path: Path) -> None:
    record = AttackedImages(tmp_path / "pgd.csv")
    add(record, 0, 0, [1, 0])
    record.clear()
    assert (record.images, record.done, record.path.exists()) == (0, set(), False)


def test_top5_under_attack_is_not_top1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven classes, by hand: under attack the label is 1st, 4th, 5th and 6th among the logits of four images."""
    places = torch.tensor([0, 3, 4, 5])
    labels = torch.full((4,), 6)

    class Ranked(torch.nn.Module):
        mean = std = torch.ones(1)

        def forward(self, images: Tensor) -> Tensor:
            """Images of 0.1, 0.2, … are clean: the label is first; the attack adds 0.4."""
            number = (10 * images.flatten(1)[:, 0]).round().long() - 1
            which, attacked = number % 4, number >= 4
            logits = torch.arange(7.0, 0, -1).repeat(len(images), 1)
            logits[torch.arange(len(images)), labels[which]] = torch.where(attacked, 7.5 - places[which], 9.0)
            ordered = logits.argsort(-1, descending=True)
            assert torch.equal(ordered[:, 0] == labels[which], ~attacked | (places[which] == 0))
            return logits

    monkeypatch.setattr("kattn_cli.attacks.noise.perturb", lambda model, images, *_: images + 0.4)
    images = torch.tensor([0.1, 0.2, 0.3, 0.4])[:, None, None, None]
    target: Any = SimpleNamespace(
        protocol=Protocol(torch.device("cpu"), batch_size=4),
        model=Ranked(),
        source=Ranked(),
        split=MemorySplit(images, labels),
        clean=torch.ones(4, dtype=torch.bool),
        opened=SimpleNamespace(checkpoint="best", step=7),
        weights="abc",
    )
    planned = Planned("noise", AttackSettings("linf", 0.4 + 1e-6, 0, 0.0))
    record = AttackedImages(tmp_path / "noise.csv")
    _measure(target, planned, record, lambda done: None)
    table = record.table()
    assert table["top1"].tolist() == [1, 0, 0, 0]
    assert table["top5"].tolist() == [1, 1, 1, 0]
    row = _row(target, planned, record)
    assert (row["clean_top1"], row["top1"], row["top5"]) == (100, 25, 75)
