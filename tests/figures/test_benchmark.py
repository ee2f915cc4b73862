"""Ratios with their bounds, drawn from a table of verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from kattn_cli.commands.plot.plot import plot_table
from kattn_cli.errors import RunError
from kattn_cli.figures.benchmark import draw_benchmark
from kattn_cli.runs.csv_rows import write_rows

SHARED = {"relation": "at least", "device": "cpu", "dtype": "float32"}


def verdict(item: str, quantity: str, against: str, value: float, bound: float | str) -> dict[str, object]:
    interval = {"low": 0.9 * value, "high": 1.1 * value}
    return {"item": item, "quantity": quantity, "ours": "fast", "against": against, "value": value, **interval} | {
        "bound": bound,
        **SHARED,
    }


def test_ratios_and_bounds(drawn: list[Figure], tmp_path: Path) -> None:
    rows = [
        verdict("rpc_image", "time", "slow", 1.5, 1.3),
        verdict("tssa_layer", "time", "fused softmax", 90, ""),
        verdict("rpc_image", "memory", "slow", 0.5, ""),
    ]
    write_rows(tmp_path / "cpu.csv", rows)
    assert plot_table(tmp_path / "cpu.csv") == [tmp_path / "cpu.png"]
    (axes,) = drawn[0].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "tssa layer, against fused softmax",
        "rpc image, against slow",
    ]
    upright = [line for line in axes.lines if np.array_equal(line.get_xdata(), [1.3, 1.3])]
    assert len(upright) == 1


def test_without_ratios(tmp_path: Path) -> None:
    table = pd.DataFrame([verdict("rpc_image", "memory", "slow", 0.5, "")])
    with pytest.raises(RunError, match=r"cpu.csv: has no ratio of times, so there is nothing to draw"):
        draw_benchmark(table, tmp_path, "cpu")
