"""Do the maps of membership or class attention find the foreground of an image?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures.lines import audit_caption, grey_line, mean_lines
from kattn_cli.figures.style import Palette, legend_above, panels, save, side_by_side

TITLES = {"membership": "membership", "class_attention": "class attention"}


def draw_foreground(areas: pd.DataFrame, folder: Path) -> Path:
    """One panel a kind of map: a line for the mean over heads, a dot for each head, the null dashed."""
    kinds = [kind for kind in TITLES if kind in set(areas["kind"])]
    figure, every = panels(len(kinds))
    palette = Palette()
    for axes, kind in zip(every, kinds, strict=True):
        _panel(axes, areas[areas["kind"] == kind], palette)
        axes.set_title(TITLES[kind])
    every[0].set_ylabel("area under\nthe ROC curve")
    legend_above(figure, *every)
    caption = audit_caption(areas, "lines: mean over heads; dots: each head, mean over seeds; 0.5 is chance")
    return save(figure, folder, "foreground", caption)


def _panel(axes: Axes, rows: pd.DataFrame, palette: Palette) -> None:
    mean_lines(axes, rows, "layer", "auc", palette)
    heads = rows.groupby(["label", "mechanism", "layer", "head"], as_index=False)["auc"].mean()
    labels = sorted(rows["label"].unique())
    for (label, mechanism), part in heads.groupby(["label", "mechanism"]):
        place = part["layer"] + side_by_side(labels.index(label), len(labels))
        colour = palette.line(str(mechanism), str(label))["color"]
        axes.plot(place, part["auc"], linestyle="none", marker=".", color=colour, alpha=0.6)
    grey_line(axes, rows.groupby("layer")["null_auc"].mean(), "null")
    axes.set(xlabel="layer", ylim=(-0.02, 1.02), xlim=(rows["layer"].min() - 0.5, rows["layer"].max() + 0.5))
