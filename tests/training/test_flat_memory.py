"""A long training takes no more memory than a short one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kattn_cli.commands.train.train import train
from kattn_cli.experiment import training_run
from kattn_cli.runs.csv_rows import append_rows

CPU = torch.device("cpu")


def resident_mib() -> float:
    """What this process holds of the machine's memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


@pytest.mark.slow
def test_memory_stays_flat_over_many_epochs(tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each epoch validates, writes its rows, and keeps weights and state."""
    held: list[float] = []

    def appended(path: Path, rows: list[dict[str, object]]) -> None:
        append_rows(path, rows)
        held.append(resident_mib())

    monkeypatch.setattr(training_run, "append_rows", appended)
    train([str(tiny_recipe)], ["train.epochs=120", "train.keep_every=1"], [], results=tmp_path, device=CPU)
    assert len(held) == 120
    assert held[-1] - held[19] < 20, f"MiB after epochs 20, 40, …: {[round(one) for one in held[19::20]]}"
