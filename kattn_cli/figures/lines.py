"""Lines over epochs, layers or another axis: a mean over seeds with its interval, one line a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures import style
from kattn_cli.figures.style import Palette, band, integer_ticks, side_by_side
from kattn_cli.tables.frames import chosen_weights, over_seeds, seeds_caption, shared_epochs

FILLED, HOLLOW = "●", "△"
"""What a title calls the markers of :func:`mean_lines`."""


def views(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return what a table can be drawn along: epochs, if there are several, and layers of the chosen weights.

    Time is ``epoch``, or ``moment`` (0 and 1) where every run was looked at twice and seeds differ in when. A table
    of one epoch and one layer is drawn along its single layer.
    """
    epochs = shared_epochs(table)
    if epochs["epoch"].nunique() > 1:
        time = [("epoch", epochs)]
    elif (table.groupby(["label", "run_seed"])["epoch"].nunique() == 2).all():
        first = table.groupby(["label", "run_seed"])["epoch"].transform("min")
        time = [("moment", table.assign(moment=(table["epoch"] > first).astype(int)))]
    else:
        time = []
    layers = [("layer", chosen_weights(table))] if table["layer"].nunique() > 1 or not time else []
    return [*time, *layers]


def mean_lines(
    axes: Axes, table: pd.DataFrame, x: str, column: str, palette: Palette, *, hollow: bool = False, log: bool = False
) -> None:
    """Draw ``column`` over ``x``: the mean of each seed's mean, with the 95 % Student-t interval over seeds.

    Rows whose ``column`` is not a number are left out, and where a seed has no others, the line has a gap. Where all
    rows have one ``x``, points with bars stand side by side.

    Args:
        hollow: triangles that are not filled, for a second quantity in the same panel; not in the legend.
        log: means and intervals of the logarithm (geometric means), for a logarithmic axis.
    """
    if table.empty:
        return
    data = table.assign(value=_logarithm(table[column]) if log else table[column])
    by_seed = data.groupby(["label", "mechanism", "run_seed", x], as_index=False)["value"].mean()
    points = over_seeds(by_seed, ("label", "mechanism", x), "value")
    columns = ["mean", "low", "high"]
    points[columns] = 10.0 ** points[columns] if log else points[columns]
    labels = sorted(table["label"].unique())
    alone = table[x].nunique() == 1
    marks: dict[str, Any] = {"marker": "^", "markerfacecolor": "white"} if hollow else {"marker": "o"}
    for (label, mechanism), part in points.groupby(["label", "mechanism"]):
        line = palette.line(str(mechanism), str(label))
        name = None if hollow else str(label)
        if alone:
            place = part[x] + side_by_side(labels.index(label) + 0.15 * hollow, len(labels))
            spread = [(part["mean"] - part["low"]).clip(0), (part["high"] - part["mean"]).clip(0)]
            axes.errorbar(place, part["mean"], yerr=spread, fmt="none", color=line["color"])
            axes.plot(place, part["mean"], **marks, color=line["color"], linestyle="none", label=name)
            continue
        axes.plot(part[x], part["mean"], **marks, **line, label=name)
        band(axes, part[x], part["low"], part["high"], line["color"], len(labels))
    if alone:
        axes.set_xlim(table[x].iloc[0] - 0.5, table[x].iloc[0] + 0.5)
    whole_ticks(axes, table[x])


def name_x(axes: Axes, x: str) -> None:
    """Name the x axis of one of :func:`views`."""
    axes.set_xlabel("weights" if x == "moment" else x)
    if x == "moment":
        axes.set_xticks([0, 1], ["first", "chosen"])
        axes.set_xlim(-0.3, 1.3)


def whole_ticks(axes: Axes, values: pd.Series) -> None:
    """Set ticks at the whole numbers that occur; at some of them where there are many."""
    there = np.unique(values)
    if len(there) <= 8:
        axes.set_xticks(there, [f"{one:g}" for one in there])
    else:
        integer_ticks(axes)


def grey_line(axes: Axes, means: pd.Series, label: str | None = None) -> None:
    """Draw what chance gives at each x, the index of ``means``; across the panel where there is one."""
    if len(means) == 1:
        axes.axhline(means.iloc[0], color="0.45", linestyle="--", linewidth=style.look.thin, label=label)
    else:
        axes.plot(means.index, means, color="0.45", linestyle="--", linewidth=style.look.thin, label=label, zorder=0.6)


def grey_band(axes: Axes, table: pd.DataFrame, x: str, mean: str, low: str, high: str, label: str) -> None:
    """Draw the range from the lowest ``low`` to the highest ``high`` of labels, hatched, and the mean of ``mean``."""
    by_label = table.groupby(["label", x], as_index=False)[list({mean, low, high})].mean()
    ends = by_label.groupby(x).agg(**{"mean": (mean, "mean"), "low": (low, "min"), "high": (high, "max")})
    grey_line(axes, ends["mean"])
    places = ends.index.to_numpy(float)
    if len(ends) == 1:
        ends, places = pd.concat([ends, ends]), places[0] + np.array([-0.5, 0.5])
    axes.fill_between(
        places, ends["low"], ends["high"], facecolor="0.9", edgecolor="0.6", hatch="////", linewidth=0, label=label,
        zorder=0.5,
    )  # fmt: skip


def means_caption(table: pd.DataFrame) -> str:
    """Return what the points of :func:`views` are means over, and of which weights."""
    several = "head" in table and table["head"].nunique() > 1
    weights = "the chosen weights" if "checkpoint" in table else "the last epoch"
    time = "mean over layers" + (" and heads" if several else "")
    parts = {
        "epoch": f"over epochs: {time}",
        "moment": f"first and chosen weights: {time}",
        "layer": f"over layers: {weights}" + (", mean over heads" if several else ""),
    }
    return "; ".join(parts[x] for x, _ in views(table))


def audit_caption(table: pd.DataFrame, *more: str) -> str:
    """Return which runs, seeds and how many inputs a figure is of, ``more``, and what its bands are."""
    counts = sorted(table["inputs"].unique()) if "inputs" in table else []
    inputs = [f"{', '.join(f'{count:,.0f}' for count in counts)} inputs"] if counts else []
    several = table.groupby("label")["run_seed"].nunique().max() > 1
    bands = ["bands: 95 % over seeds (Student-t)"] if several else []
    return "; ".join([seeds_caption(table), *inputs, *more, *bands])


def _logarithm(values: pd.Series) -> pd.Series:
    return np.log10(values.where(values > 0))
