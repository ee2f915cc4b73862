"""Error under each corruption over its severity."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures import style
from kattn_cli.figures.style import Palette, band, integer_ticks, legend_above, save
from kattn_cli.tables.corruption_errors import errors_by_type, measured_together
from kattn_cli.tables.frames import over_seeds, seeds_caption

MEAN = "mean of all"
COLUMNS = 4


def corruption_frame(evaluated: pd.DataFrame) -> pd.DataFrame:
    """Return errors in % from the rows of several runs' ``eval.csv`` under corruption that belong together.

    Columns ``label``, ``mechanism``, ``run_seed``, ``corruption``, ``severity``, ``error``, ``error_low``,
    ``error_high``, ``images``, ``parameters``, ``seed``. Severity 0, clean, is there for each type; the type
    ``mean of all`` is the mean over those measured at all five severities, where there are several.
    """
    if "corruption" not in evaluated:
        return pd.DataFrame()
    parts = [_of_one_run(measured_together(part)) for _, part in evaluated.groupby(["label", "run_seed"], sort=False)]
    there = [part for part in parts if len(part)]
    return pd.concat(there, ignore_index=True) if there else pd.DataFrame()


def draw_corruptions(errors: pd.DataFrame, folder: Path) -> Path:
    """Draw a panel for each type, and one for their mean, from :func:`corruption_frame`."""
    names = sorted(errors["corruption"].unique(), key=lambda name: name == MEAN)
    columns = min(COLUMNS, len(names))
    rows = -(-len(names) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=style.look.size(max(4.2, 2.0 * columns), 1.55 * rows + 0.8), squeeze=False,
        sharex=True, sharey=True, layout="constrained",
    )  # fmt: skip
    palette = Palette()
    for axes, name in zip(grid.flat, names, strict=False):
        _panel(axes, errors[errors["corruption"] == name], palette)
        axes.set_title(
            str(name).replace("_", " "), fontsize="small", weight="bold" if name == MEAN else "normal", pad=3
        )
    for place, axes in enumerate(grid.flat):
        axes.set_visible(place < len(names))
        lowest = place + columns >= len(names)
        axes.tick_params(labelbottom=lowest)
        axes.set_xlabel("severity" if lowest else "")
        axes.set_ylabel("error (%)" if place % columns == 0 else "")
    legend_above(figure, grid[0, 0])
    images = ", ".join(f"{count:,}" for count in sorted(errors["images"].unique()))
    how = ", ".join(sorted(errors["parameters"].unique()))
    caption = (
        f"top-1 error; {seeds_caption(errors)}; {images} test images; parameters {how}; severity 0 is clean; "
        "bands: 95 % (Student-t over seeds, Wilson for one)"
    )
    return save(figure, folder, "corruption_errors", caption)


def _of_one_run(rows: pd.DataFrame) -> pd.DataFrame:
    if rows.empty:
        return rows
    errors = rows.assign(
        error=100 - rows["top1"], error_low=100 - rows["top1_high"], error_high=100 - rows["top1_low"]
    ).drop(columns=["top1_low", "top1_high"])
    clean, corrupted = errors[errors["severity"] == 0], errors[errors["severity"] > 0]
    names = list(corrupted["corruption"].unique())
    how = {column: corrupted[column].iloc[0] for column in ("parameters", "seed")}
    parts = [corrupted, *(clean.assign(corruption=name, **how) for name in names)]
    if len(complete := errors_by_type(rows).index) > 1:
        among = corrupted[corrupted["corruption"].isin(complete)]
        means = among.groupby("severity", as_index=False)["error"].mean()
        same = {column: corrupted[column].iloc[0] for column in ("label", "mechanism", "run_seed", "images")}
        parts += [means.assign(corruption=MEAN, **same, **how), clean.assign(corruption=MEAN, **how)]
    return pd.concat(parts, ignore_index=True)


def _panel(axes: Axes, rows: pd.DataFrame, palette: Palette) -> None:
    points = over_seeds(rows, ("label", "mechanism", "severity"), "error")
    for (label, mechanism), part in points.groupby(["label", "mechanism"]):
        line = palette.line(str(mechanism), str(label))
        axes.plot(part["severity"], part["mean"], marker="o", label=label, **line)
        low, high = part["low"].fillna(part["mean"]), part["high"].fillna(part["mean"])
        band(axes, part["severity"], low, high, line["color"], rows["label"].nunique())
    axes.set_ylim(-2, 102)
    integer_ticks(axes)
