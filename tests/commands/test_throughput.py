"""``kattn throughput``: every program trains, and the table and its ratios are written."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import torch

from kattn_cli.commands.throughput.throughput import PAIRS, PLAIN, REAL, SOFTMAX, SYNTHETIC, measure_throughput


@pytest.mark.parametrize(
    ("overrides", "programs"),
    [
        (["train.flip=0.5", "train.mixup=0.8", "train.precision=bfloat16"], [PLAIN, SOFTMAX, SYNTHETIC, REAL]),
        (["model={name: tost, patch_size: 4, dim: 16, depth: 1, heads: 2}", "attention=tssa"], [SYNTHETIC, REAL]),
    ],
    ids=["vit", "tost"],
)
def test_table_and_manifest(tiny_recipe: Path, tmp_path: Path, overrides: list[str], programs: list[str]) -> None:
    """timm has no counterpart of ToST, so there is nothing to hold the loop against."""
    done = measure_throughput(
        str(tiny_recipe), overrides, results=tmp_path, device=torch.device("cpu"), rounds=2, steps=3
    )
    table = pd.read_csv(done.path)
    assert table["program"].unique().tolist() == programs
    assert (table["images_per_second"] > 0).all()
    assert len(table) == 2 * len(programs)
    manifest = json.loads(done.path.with_suffix(".json").read_text())
    assert manifest["recipe"]["name"] == "tiny"
    for one, other in PAIRS:
        if other in programs:
            middle, least, most = done.speeds.ratio(one, other)
            assert 0 < least <= middle <= most
