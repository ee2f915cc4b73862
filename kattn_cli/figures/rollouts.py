"""Rollouts: the returns that are reached over those that were asked for, and normalised scores side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures import style
from kattn_cli.figures.style import DASHES, Palette, band, legend_above, panels, save, side_by_side
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.tables.frames import over_seeds, seeds_caption, shared_folder

HATCHES = ("", "//", "..", "xx", "--", "\\\\", "++", "oo")
"""Of bars, as :data:`~kattn_cli.figures.style.DASHES` are of lines."""
GROUP = ("label", "mechanism", "target_return")


def draw_rollouts(table: pd.DataFrame, folder: Path) -> Path:
    """Draw for each environment a panel of returns over targets, and one of scores where they are known.

    Means over seeds with 95 % Student-t intervals; of a single seed over its episodes.

    Args:
        table: of :func:`~kattn_cli.tables.values.asked_for`, with a row at least.
    """
    table = _without_environment(table)
    parts = [part for _, part in table.groupby("environment", sort=False)]
    scored = [part for part in parts if part["normalised_score"].notna().all()]
    figure, every = panels(len(parts) + len(scored))
    palette = Palette()
    for axes, part in zip(every, parts, strict=False):
        _over_targets(axes, part, palette)
    for axes, part in zip(every[len(parts) :], scored, strict=True):
        _scores(axes, part, palette)
    legend_above(figure, *every)
    return save(figure, folder, "rollouts", _caption(table))


def _without_environment(table: pd.DataFrame) -> pd.DataFrame:
    """Return labels less the environment, their panel's title, unless two of one panel would become one."""
    parts = zip(table["label"], table["environment"], strict=True)
    labels = [label.replace(f"{environment}/", "", 1) for label, environment in parts]
    folder = shared_folder(labels)
    short = table.assign(label=[label.removeprefix(folder) for label in labels])
    same = ["environment", "label"]
    return table if len(short.drop_duplicates(same)) < len(table.drop_duplicates(same)) else short


def score_points(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the mean of ``column`` over seeds for each label and target, with ``low`` and ``high``."""
    rows = []
    for _, part in table.groupby([*GROUP, "run_seed"], sort=False):
        mean, half = mean_interval(part[column].tolist())
        half = 0.0 if half != half else half
        run = {name: part[name].iloc[0] for name in GROUP}
        rows.append({**run, column: mean, f"{column}_low": mean - half, f"{column}_high": mean + half})
    return over_seeds(pd.DataFrame(rows), GROUP, column)


def _over_targets(axes: Axes, table: pd.DataFrame, palette: Palette) -> None:
    points = score_points(table, "return")
    targets = sorted(points["target_return"].unique())
    labels = list(dict.fromkeys(points["label"]))
    for (label, mechanism), part in points.groupby(["label", "mechanism"], sort=False):
        line = palette.line(str(mechanism), str(label))
        if len(targets) > 1:
            axes.plot(part["target_return"], part["mean"], marker="o", label=label, **line)
            band(axes, part["target_return"], part["low"], part["high"], line["color"], len(labels))
            continue
        place = part["target_return"] + side_by_side(labels.index(str(label)), len(labels))
        axes.errorbar(place, part["mean"], yerr=_spread(part), fmt="o", color=line["color"], label=label)
    if len(targets) == 1:
        axes.set_xlim(targets[0] - 0.5, targets[0] + 0.5)
        axes.axhline(targets[0], color="0.45", linestyle="--", linewidth=style.look.thin, label="return = target")
    else:
        axes.plot(targets, targets, color="0.45", linestyle="--", linewidth=style.look.thin, label="return = target")
    axes.set_xticks(targets, [f"{one:g}".replace("-", "\N{MINUS SIGN}") for one in targets])
    axes.set_xlabel("target return")
    axes.set_ylabel("return reached")
    axes.set_title(str(table["environment"].iloc[0]))


def _scores(axes: Axes, table: pd.DataFrame, palette: Palette) -> None:
    points = score_points(table, "normalised_score")
    targets = sorted(points["target_return"].unique(), reverse=True)
    labels = list(dict.fromkeys(points["label"]))
    width = 0.8 / len(labels)
    for (label, mechanism), part in points.groupby(["label", "mechanism"], sort=False):
        line = palette.line(str(mechanism), str(label))
        bars = {"color": line["color"], "alpha": 0.85, "hatch": HATCHES[DASHES.index(line["linestyle"])]}
        shift = side_by_side(labels.index(str(label)), len(labels), 0.8)
        places = [targets.index(target) + shift for target in part["target_return"]]
        axes.bar(places, part["mean"], 0.9 * width, edgecolor="white", label=label, **bars)
        spread: dict[str, Any] = {"ecolor": "0.45", "elinewidth": style.look.thin, "capsize": 2}
        axes.errorbar(places, part["mean"], yerr=_spread(part), fmt="none", **spread)
    axes.set_xticks(range(len(targets)), [f"{one:g}".replace("-", "\N{MINUS SIGN}") for one in targets])
    axes.set_xlabel("target return")
    axes.set_ylabel("normalised score")
    axes.set_title(str(table["environment"].iloc[0]))
    axes.grid(axis="x", visible=False)


def _spread(part: pd.DataFrame) -> list[pd.Series]:
    return [(part["mean"] - part["low"]).fillna(0).clip(0), (part["high"] - part["mean"]).fillna(0).clip(0)]


def _caption(table: pd.DataFrame) -> str:
    counts = sorted(table.groupby(["label", "run_seed", "target_return"]).size().unique())
    episodes = f"{', '.join(f'{count:,}' for count in counts)} episodes for each target"
    seeds = table.groupby("label")["run_seed"].nunique()
    over = " and ".join(
        what for what, holds in (("seeds", seeds.max() > 1), ("episodes of a single seed", seeds.min() == 1)) if holds
    )
    return f"{seeds_caption(table)}; {episodes}; 95 % intervals over {over} (Student-t)"
