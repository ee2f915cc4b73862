"""Killed with SIGKILL at any moment and resumed: the numbers of an undisturbed training, to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from killed_training import Event, train_until
from safetensors.torch import load_file

from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run

DEIT = """\
name: killed
data: {name: digits}
model: {name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2, drop_path: 0.1}
attention: {name: symmetric, attn_drop: 0.1, layers: {0: {name: rpc, iterations: 2}}}
train:
  epochs: 3
  batch_size: 256
  lr: 5e-3
  crop_padding: 1
  flip: 0.5
  randaugment: rand-m9-mstd0.5-inc1
  erasing: 0.25
  mixup: 0.8
  cutmix: 1.0
  ema: 0.9
  checkpoint_steps: 2
"""
TIMES = ("images_per_second", "seconds")


def outcome(results: Path) -> tuple[list[dict[str, str]], dict[str, dict[str, torch.Tensor]], Run]:
    (folder,) = (results / "killed").iterdir()
    rows = [{key: value for key, value in row.items() if key not in TIMES} for row in read_rows(folder / "metrics.csv")]
    weights = {which: load_file(folder / "checkpoints" / f"{which}.safetensors") for which in ("best", "last")}
    return rows, weights, Run(folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    recipe = folder / "killed.yaml"
    recipe.write_text(DEIT)
    assert train_until(None, recipe, folder / "results") == 0
    return folder / "results"


@pytest.mark.parametrize(
    "deaths",
    [
        [("step", 3)],
        [("step", 5), ("step", 1), ("step", 7)],
        [("step", 10), ("rows", 1)],
        [("checkpoint", 1), ("checkpoint", 2), ("checkpoint", 4)],
        [("rename", 3), ("rename", 9), ("rename", 14)],
        [("renamed", 8), ("renamed", 11), ("renamed", 6)],
    ],
    ids=lambda deaths: "-".join(f"{kind}{time}" for kind, time in deaths),
)
def test_killed_and_resumed_equals_undisturbed(undisturbed: Path, tmp_path: Path, deaths: list[Event]) -> None:
    """Mid-epoch, at an epoch's end, with half a checkpoint written, before and after a file takes its name."""
    recipe = tmp_path / "killed.yaml"
    recipe.write_text(DEIT)
    for event in deaths:
        assert train_until(event, recipe, tmp_path / "results") == -9, event
    assert train_until(None, recipe, tmp_path / "results") == 0
    rows, weights, run = outcome(tmp_path / "results")
    expected_rows, expected_weights, expected_run = outcome(undisturbed)
    assert rows == expected_rows
    for which, tensors in expected_weights.items():
        assert all(torch.equal(tensor, weights[which][name]) for name, tensor in tensors.items()), which
    assert run.status == expected_run.status == "finished"
    for fact in ("best_epoch", "best_validation_top1"):
        assert run.manifest[fact] == expected_run.manifest[fact]
