"""A training of every kind of data that dies after its first validation ends as one that was never stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from killed_training import train_until
from safetensors.torch import load_file
from tiny_tasks import WRITERS, write_tiny

from kattn_cli.runs.csv_rows import read_rows


@pytest.mark.parametrize("task", WRITERS)
def test_after_the_first_epoch(task: str, tmp_path: Path) -> None:
    recipe = write_tiny(task, tmp_path)
    assert train_until(None, recipe, tmp_path / "whole") == 0
    assert train_until(("rows", 2), recipe, tmp_path / "killed") == -9
    assert train_until(None, recipe, tmp_path / "killed") == 0
    runs = [tmp_path / name / "tiny/0" for name in ("whole", "killed")]
    weights = [load_file(run / "checkpoints/last.safetensors") for run in runs]
    assert all(torch.equal(weights[0][name], tensor) for name, tensor in weights[1].items())
    rows = [[(row["epoch"], row["split"], row["loss"]) for row in read_rows(run / "metrics.csv")] for run in runs]
    assert rows[0] == rows[1]
