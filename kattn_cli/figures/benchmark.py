"""How many times faster our operators are, with the bounds they are to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.ticker import LogLocator, NullLocator

from kattn_cli.errors import NothingToDraw
from kattn_cli.figures.style import grid, save

OPPONENTS = {"slow": "#0072B2", "plain": "#E69F00", "compiled": "#009E73", "fused softmax": "#000000"}
"""Against what, and its colour."""


def draw_benchmark(verdicts: pd.DataFrame, folder: Path, name: str) -> Path:
    """Draw ratios of time with their intervals, one line each, with bounds as upright marks.

    Raises:
        NothingToDraw: if the table has no ratio of time.
    """
    ratios = _ratios(verdicts).iloc[::-1]
    if ratios.empty:
        raise NothingToDraw(f"{folder / name}.csv: has no ratio of times, so there is nothing to draw")
    figure, axes_grid = grid(1, 1, height=0.7 + 0.3 * len(ratios))
    axes = axes_grid[0, 0]
    for place, row in enumerate(ratios.itertuples()):
        colour = OPPONENTS[row.against]
        reach = [[max(row.value - row.low, 0)], [max(row.high - row.value, 0)]]
        axes.errorbar(row.value, place, xerr=None if pd.isna(row.low) else reach, fmt="o", color=colour, capsize=2)
        if not pd.isna(row.bound):
            axes.plot([row.bound] * 2, [place - 0.35, place + 0.35], color="#D55E00", linewidth=1)
    axes.axvline(1, color="0.6", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(ratios)), [_label(row) for row in ratios.itertuples()])
    axes.set_xlabel("times faster (median of rounds)")
    axes.grid(visible=False, axis="y")
    first = verdicts.iloc[0]
    caption = (
        f"{first['device']}, {first['dtype']}; their time over ours, round by round, and the 95 % interval of the "
        "median; upright marks: the bound to keep"
    )
    return save(figure, folder, name, caption)


def has_ratios(verdicts: pd.DataFrame) -> bool:
    """Return whether there is anything to draw."""
    return not _ratios(verdicts).empty


def _ratios(verdicts: pd.DataFrame) -> pd.DataFrame:
    return verdicts[(verdicts["quantity"] == "time") & verdicts["against"].isin(OPPONENTS)]


def _label(row: Any) -> str:
    of = row.ours if "/" in row.ours else row.item.replace("_", " ")
    return f"{of}, against {row.against}"
