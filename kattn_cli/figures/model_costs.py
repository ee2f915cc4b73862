"""The figure of whole models' costs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from kattn_cli.errors import NothingToDraw
from kattn_cli.figures.lines import FILLED, HOLLOW
from kattn_cli.figures.style import Palette, grid, legend_above, log_if_wide, save

QUANTITIES = {"milliseconds_per_sample": "time (ms a sample)", "memory_mib": "memory (MiB)"}


def draw_model_costs(costs: pd.DataFrame, folder: Path, name: str) -> Path:
    """Time and memory: over the length where models were measured at several, else a row of marks for each model.

    Raises:
        NothingToDraw: if no measurement went well.
    """
    rows = costs[costs["status"] == "ok"].copy()
    if rows.empty:
        raise NothingToDraw(f"{name}.csv: has no measurement that went well, so there is nothing to draw")
    rows["memory_mib"] = rows["held_mib"] + rows["peak_mib"]
    rows["label"] = _labels(rows)
    first = costs.iloc[0]
    batches = ", ".join(str(batch) for batch in rows["batch"].unique())
    caption = (
        f"{first['device']}, {', '.join(rows['dtype'].unique())}, batch {batches}; memory: weights, optimizer's state "
        "and the peak of a call; time: medians"
    )
    several = rows.groupby(["label", "pass"])["n"].nunique().max() > 1
    return save(_over_length(rows) if several else _side_by_side(rows), folder, name, caption)


def _labels(rows: pd.DataFrame) -> pd.Series:
    """The model's name, with the version where it is not the fast one, and the batch and precision if they differ."""
    labels = rows["model"].astype(str)
    labels = labels.where(rows["version"] == "fast", labels + " (" + rows["version"].astype(str) + ")")
    for column in ("batch", "dtype"):
        if rows[column].nunique() > 1:
            labels = labels + f", {column} ".replace("dtype ", "") + rows[column].astype(str)
    return labels


def _over_length(rows: pd.DataFrame) -> Figure:
    passes = list(rows["pass"].unique())
    figure, every = grid(len(passes), 2)
    palette = Palette()
    for what, axes_row in zip(passes, every, strict=True):
        for axes, (column, title) in zip(axes_row, QUANTITIES.items(), strict=True):
            for (model, label), part in rows[rows["pass"] == what].groupby(["attention", "label"], sort=False):
                ordered = part.sort_values("n")
                line = palette.line(str(model), str(label))
                axes.plot(ordered["n"], ordered[column], marker="o", label=str(label), **line)
            axes.set_xscale("log", base=2)
            log_if_wide(axes, rows.loc[rows["pass"] == what, column])
            axes.set_ylabel(title)
            axes.set_title(what)
    for axes in every[-1]:
        axes.set_xlabel("tokens N")
    legend_above(figure, *every.flat)
    return figure


def _side_by_side(rows: pd.DataFrame) -> Figure:
    labels, passes = list(rows["label"].unique()), list(rows["pass"].unique())
    figure, every = grid(1, 2, height=1.2 + 0.24 * len(labels), sharey="row")
    palette = Palette()
    for axes, (column, title) in zip(every[0], QUANTITIES.items(), strict=True):
        for place, what in enumerate(passes):
            for (attention, label), part in rows[rows["pass"] == what].groupby(["attention", "label"], sort=False):
                colour = palette.line(str(attention), str(attention))["color"]
                filled = {"marker": "o"} if place == 0 else {"marker": "^", "markerfacecolor": "white"}
                axes.plot(part[column], [labels.index(label)] * len(part), color=colour, linestyle="", **filled)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(title)
    every[0, 0].set_yticks(range(len(labels)), labels)
    every[0, 0].set_ylim(len(labels) - 0.5, -0.5)
    marks = zip((FILLED, HOLLOW), passes, strict=False)
    figure.suptitle("   ".join(f"{mark} {what}" for mark, what in marks), fontsize="medium")
    return figure
