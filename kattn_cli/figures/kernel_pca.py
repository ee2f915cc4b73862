"""Kernel PCA: time and accuracy of each solver, and their times as multiples of the dual's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from kattn_cli.figures.style import OTHERS, leftmost, legend_above, panels, save, side_by_side
from kattn_cli.tables.costs import DUAL, PROBLEM, RANDOMISED, solver_ratios

MARKERS: dict[str, dict[str, Any]] = {
    "full": {"color": "#000000", "marker": "s"},
    "Lanczos": {"color": OTHERS[1], "marker": "^"},
    RANDOMISED: {"color": OTHERS[0], "marker": "D"},
    f"{RANDOMISED}, defaults": {"color": OTHERS[0], "marker": "D", "markerfacecolor": "none"},
    DUAL: {"color": "#D55E00", "marker": "o"},
}
LEAST = 1e-16
"""An accuracy below this is rounding, and drawn here."""


def draw_kernel_pca(times: pd.DataFrame, folder: Path, name: str) -> Path:
    """Draw a panel for each problem, every round a point in time and accuracy, and one of all ratios."""
    problems = list(times.groupby(PROBLEM, sort=False))
    figure, every = panels(len(problems) + 1)
    for axes, (key, part) in zip(every, problems, strict=False):
        _time_and_accuracy(axes, part)
        axes.set_title(_title(key))
    for axes in leftmost(every[:-1]):
        axes.set_ylabel("variance missed (share)")
    _ratios(every[-1], solver_ratios(times), [key for key, _ in problems])
    legend_above(figure, every[0])
    first = times.iloc[0]
    caption = (
        f"s = {first['components']} components, {first['device']}, threads: {first['threads']}, "
        f"{times['round'].nunique()} rounds; dashed: the tolerance that settings were tuned to; "
        f"below {LEAST:.0e}: drawn there; "
        "ratios of one round: median and range"
    )
    return save(figure, folder, name, caption)


def _title(key: tuple[object, ...]) -> str:
    problem = dict(zip(PROBLEM, key, strict=True))
    return f"{problem['task']}, {problem['kernel']}, N = {problem['n']:,}"


def _time_and_accuracy(axes: Axes, rows: pd.DataFrame) -> None:
    for solver, style in MARKERS.items():
        part = rows[rows["solver"] == solver]
        axes.plot(part["seconds"], part["accuracy"].clip(lower=LEAST), linestyle="", label=solver, **style)
    axes.axhline(rows["tolerance"].iloc[0], color="0.4", linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yscale("log")
    axes.set_xlabel("time (s)")


def _ratios(axes: Axes, table: pd.DataFrame, problems: list[tuple[object, ...]]) -> None:
    solvers = [solver for solver in MARKERS if solver != DUAL]
    for index, solver in enumerate(solvers):
        part = table[table["solver"] == solver].set_index(PROBLEM).loc[problems]
        places = [row + side_by_side(index, len(solvers)) for row in range(len(problems))]
        spread = [part["ratio"] - part["ratio_low"], part["ratio_high"] - part["ratio"]]
        axes.errorbar(places, part["ratio"], yerr=spread, linestyle="", **MARKERS[solver])
    axes.axhline(1, color="0.4", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylabel("time / dual's time")
    axes.set_xticks(range(len(problems)), [f"{task},\n{kernel}" for task, _, kernel, *_ in problems], fontsize="small")
    axes.set_xlim(-0.5, len(problems) - 0.5)
    axes.set_title("above 1: the dual is faster")
