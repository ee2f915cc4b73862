"""Accuracy under attack: over the size of the perturbation, and side by side for attacks of one budget."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures.style import Palette, band, integer_ticks, leftmost, legend_above, panels, save, side_by_side
from kattn_cli.statistics.intervals import wilson_interval
from kattn_cli.tables.attack_names import SIGNS
from kattn_cli.tables.frames import over_seeds, seeds_caption
from kattn_cli.tables.measurements import apart, settings

TITLED = ["attack", "norm", "epsilon_units", "targeted"]
"""What a title tells of a panel anyway; of all else it tells what differs between panels."""
TITLES = {"noise": "uniform noise", "autoattack": "AutoAttack", "square": "Square"}


def draw_robustness(attacks: pd.DataFrame, folder: Path) -> Path:
    """Draw a panel for each attack at several ε, ε = 0 being clean; all others together in one more.

    Bands and bars are 95 % intervals: Student-t over seeds, Wilson for a single one.
    """
    same = settings(attacks, ["epsilon", "name"])
    of_panels = attacks.assign(apart=apart(attacks, TITLED, [one for one in same if one not in TITLED]))
    series = [(rows.iloc[0], rows) for _, rows in of_panels.groupby(same, sort=False, dropna=False)]
    swept = [(key, rows) for key, rows in series if rows["epsilon"].nunique() > 1]
    single = [rows for _, rows in series if rows["epsilon"].nunique() == 1]
    figure, every = panels(len(swept) + bool(single))
    palette = Palette()
    for axes, (what, rows) in zip(every, swept, strict=False):
        _over_epsilon(axes, rows, what, palette)
    if single:
        _side_by_side(every[-1], pd.concat(single), palette)
    for axes in leftmost(every):
        axes.set_ylabel("test top-1 (%)")
    legend_above(figure, *every)
    images = ", ".join(f"{count:,}" for count in sorted(attacks["images"].unique()))
    caption = f"{seeds_caption(attacks)}; {images} test images; 95 % intervals (Student-t over seeds, Wilson for one)"
    return save(figure, folder, "robustness", caption)


def _over_epsilon(axes: Axes, rows: pd.DataFrame, what: pd.Series, palette: Palette) -> None:
    points = over_seeds(pd.concat([_clean(rows), rows]), ("label", "mechanism", "epsilon"), "top1")
    unit = 255 if what["norm"] == "linf" else 1
    for (label, mechanism), part in points.dropna(subset="mean").groupby(["label", "mechanism"]):
        line = palette.line(str(mechanism), str(label))
        axes.plot(unit * part["epsilon"], part["mean"], marker="o", label=label, **line)
        low, high = part["low"].fillna(part["mean"]), part["high"].fillna(part["mean"])
        band(axes, unit * part["epsilon"], low, high, line["color"], rows["label"].nunique())
    axes.set_title(_title(what))
    space = "pixel range" if what["epsilon_units"] != "normalised" else "normalised range"
    share = "1/255 of the " if unit == 255 else ""
    axes.set_xlabel(f"ε ({share}{space}, {SIGNS[str(what['norm'])]})")
    axes.set_ylim(-2, 102)
    if unit == 255:
        integer_ticks(axes)


def _clean(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each label and seed at ε = 0, with the interval of its own images."""
    clean = rows.drop_duplicates(["label", "run_seed"]).assign(epsilon=0.0, top1=lambda row: row["clean_top1"])
    ends = [
        wilson_interval(round(share / 100 * images), images)
        for share, images in zip(clean["clean_top1"], clean["images"], strict=True)
    ]
    low, high = zip(*ends, strict=True)
    return clean.assign(top1_low=[100 * end for end in low], top1_high=[100 * end for end in high])


def _side_by_side(axes: Axes, rows: pd.DataFrame, palette: Palette) -> None:
    names = list(dict.fromkeys(rows["name"]))
    points = over_seeds(rows, ("label", "mechanism", "name"), "top1")
    labels = list(dict.fromkeys(points["label"]))
    for (label, mechanism), part in points.groupby(["label", "mechanism"]):
        line = palette.line(str(mechanism), str(label))
        shift = side_by_side(labels.index(label), len(labels), 0.7)
        places = [names.index(name) + shift for name in part["name"]]
        spread = [(part["mean"] - part["low"]).fillna(0).clip(0), (part["high"] - part["mean"]).fillna(0).clip(0)]
        axes.errorbar(places, part["mean"], yerr=spread, fmt="o", color=line["color"], label=label)
    axes.set_xticks(
        range(len(names)),
        names,
        rotation=30 if len(names) > 2 else 0,
        ha="right" if len(names) > 2 else "center",
        fontsize="small",
    )
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_title("one budget")
    axes.set_ylim(-2, 102)


def _title(what: pd.Series) -> str:
    parts = [TITLES.get(str(what["attack"]), str(what["attack"]).upper())]
    parts += ["targeted"] if what["targeted"] in (True, "True") else []
    parts += ["(normalised)"] if what["epsilon_units"] == "normalised" else []
    return " ".join(filter(None, [*parts, what["apart"]]))
