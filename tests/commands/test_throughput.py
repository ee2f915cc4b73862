"""``kattn throughput``: programs take turns, every one trains, and the table and its ratios are written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch

from kattn_cli.commands.throughput.measure import (
    PAIRS,
    PLAIN,
    REAL,
    SOFTMAX,
    SYNTHETIC,
    Speeds,
    measure_speeds,
    measure_throughput,
)


def program(seconds: float, log: list[float]) -> Iterator[int]:
    while True:
        log.append(seconds)
        time.sleep(seconds)
        yield 10


def test_ratios_are_of_the_same_round() -> None:
    speeds = Speeds({"a": [10.0, 30.0, 40.0], "b": [20.0, 30.0, 20.0]})
    assert speeds.ratio("a", to="b") == (1.0, 0.5, 2.0)
    assert speeds.median("a") == 30


def test_programs_take_turns_in_changing_order_after_a_warm_up() -> None:
    log: list[float] = []
    rounds: list[int] = []
    programs = {"slow": program(0.004, log), "quick": program(0.002, log)}
    speeds = measure_speeds(programs, torch.device("cpu"), rounds=2, steps=3, on_round=rounds.append)
    quick_first, slow_first = [0.002] * 3 + [0.004] * 3, [0.004] * 3 + [0.002] * 3
    assert log == [*quick_first, *slow_first, *quick_first]
    assert rounds == [0, 1, 2]
    assert [len(found) for found in speeds.rounds.values()] == [2, 2]
    assert speeds.median("slow") == pytest.approx(10 / 0.004, rel=0.9)
    assert speeds.median("slow") <= 10 / 0.004


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
