"""Print the costs of whole models, as multiples of the first one's, and the papers' beside them."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.papers.costs import beside_the_papers, notes
from kattn_cli.tables.text import write_frame

COUNTED = (
    "GFLOP a sample: forward, a multiplication and an addition counting as two; mechanisms by their formulas, the rest "
    "by torch's counter: matrix products and convolutions, not norms, activations and residual sums"
)


def print_models(costs: pd.DataFrame, path: Path) -> None:
    """Print one table a pass, and write the multiples beside ``path`` as ``<name>.ratios.csv``."""
    table = beside_the_papers(costs)
    write_frame(path.with_suffix(".ratios.csv"), table)
    published = bool(table[["published_time", "published_memory"]].notna().any(axis=None))
    columns = ["", "N", "ms a sample", "×", "MiB", "×", "GFLOP a sample", "parameters"]
    columns += ["paper: time", "memory", "flops"] if published else []
    for (what, batch), part in table.groupby(["pass", "batch"], sort=False):
        console.print(f"\n{what}, batch {batch}, {part['dtype'].iloc[0]}")
        print_wide([*columns, ""], [_cells(row, published) for _, row in part.iterrows()])
    console.print("\n×: of the first model in the table; MiB: weights, optimizer and the peak of a call")
    console.print(COUNTED)
    for note in notes(table):
        console.print(note)


def _cells(row: pd.Series, published: bool) -> list[str]:
    name = row["model"] if row["version"] == "fast" else f"{row['model']} ({row['version']})"
    flops, parameters = row["forward_flops_per_sample"], row["parameters"]
    cells = [
        name,
        f"{row['n']:,}",
        _number(row["milliseconds_per_sample"]),
        _times(row["time_ratio"]),
        _number(row["memory_mib"]),
        _times(row["memory_ratio"]),
        _number(flops / 1e9),
        "" if pd.isna(parameters) else f"{parameters / 1e6:.1f} M",
    ]
    if published:
        cells += [_paper(row, one) for one in ("time", "memory", "flops")]
    return [*cells, "" if row["status"] == "ok" else row["status"]]


def _paper(row: pd.Series, name: str) -> str:
    value, unit, ratio = (row[f"published_{name}{part}"] for part in ("", "_unit", "_ratio"))
    if pd.isna(value):
        return ""
    return _times(value) if unit == "×" else f"{value:g} {unit} {_times(ratio)}".rstrip()


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _times(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"{ratio:.2f}×"
