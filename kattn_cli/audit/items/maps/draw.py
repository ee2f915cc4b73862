"""Maps over the patches of images: membership and class attention (ToST paper, Figures 4b, 5, 9, 10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from kattn_cli.figures import style
from kattn_cli.figures.lines import audit_caption, grey_line, mean_lines
from kattn_cli.figures.style import Palette, legend_above, panels, save, side_by_side

INCHES = 0.9
"""Of each picture."""
MOST_IMAGES = 8
GAP = 0.06
STEP = 1 + GAP
PICTURE = "image"
KINDS = {"membership": "membership Π", "class_attention": "attention of the class token"}
TITLES = {"membership": "membership", "class_attention": "class attention"}


def draw_maps(
    kind: str, maps: pd.DataFrame, images: pd.DataFrame, folder: Path, layer: int | None = None
) -> list[Path]:
    """Draw a picture for each label, of its lowest seed: a row an image, which stands first, and a column a head.

    Args:
        kind: ``membership`` or ``class_attention``, which is also how the files' names begin.
        images: the pixels; where a label has none, its maps stand alone.
        layer: which; by default each label's last.
    """
    pictures = dict(first_seed(images)) if len(images) else {}
    none = pd.DataFrame(columns=["image"])
    return [_draw(kind, name, rows, pictures.get(name, none), folder, layer) for name, rows in first_seed(maps)]


def _draw(kind: str, label: str, maps: pd.DataFrame, images: pd.DataFrame, folder: Path, layer: int | None) -> Path:
    chosen = maps["layer"].max() if layer is None else layer
    rows = maps[maps["layer"] == chosen]
    names, heads = sorted(rows["image"].unique())[:MOST_IMAGES], sorted(rows["head"].unique())
    columns = [*([PICTURE] if len(images) else []), *heads]
    size = style.look.size(INCHES * len(columns) + 0.9, INCHES * len(names) + 0.8)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    for line, name in enumerate(names):
        of_image = rows[rows["image"] == name]
        for place, column in enumerate(columns):
            if column is PICTURE:
                _show(axes, pixels(images[images["image"] == name]), line, place)
            else:
                _show(axes, patches(of_image[of_image["head"] == column]), line, place)
    axes.set(xlim=(0, len(columns) * STEP - GAP), ylim=(len(names) * STEP - GAP, 0))
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize="small", labeltop=True, labelbottom=False)
    middles = [place * STEP + 0.5 for place in range(max(len(columns), len(names)))]
    axes.set_xticks(middles[: len(columns)], [one if one is PICTURE else f"head {one}" for one in columns])
    axes.set_yticks(middles[: len(names)], [_name(images, name) for name in names])
    caption = (
        f"{KINDS[kind]}; {label}, seed {rows['run_seed'].iloc[0]}, layer {chosen}; "
        "each map on a scale of its own, dark its least value and bright its greatest"
    )
    return save(figure, folder, f"{kind}_{slug(label)}", caption)


def first_seed(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each label, with its rows of the lowest seed."""
    for label, rows in table.groupby("label"):
        yield str(label), rows[rows["run_seed"] == rows["run_seed"].min()]


def slug(label: str) -> str:
    """Return a label as part of a file's name: ``lra/text`` is ``lra_text``."""
    return re.sub(r"[^\w.=-]+", "_", label).strip("_")


def pixels(picture: pd.DataFrame) -> NDArray[np.floating]:
    """Return the rows of one image as ``(height, width, 3)`` in [0, 1]."""
    shape = (int(picture["row"].max()) + 1, int(picture["column"].max()) + 1, 3)
    values = picture.sort_values(["row", "column"])[["red", "green", "blue"]].to_numpy(float)
    return values.reshape(shape).clip(0, 1)


def patches(rows: pd.DataFrame) -> NDArray[np.floating]:
    """Return the rows of one map as ``(height, width)``."""
    return rows.pivot(index="row", columns="column", values="value").to_numpy(float)


def _show(axes: Axes, picture: NDArray[np.floating], row: int, column: int) -> None:
    """Show the picture in this place of the sheet, one unit wide and high, on a colour scale of its own."""
    left, top = column * STEP, row * STEP
    axes.imshow(picture, extent=(left, left + 1, top + 1, top))


def _name(images: pd.DataFrame, number: int) -> str:
    """Return the image's class, on two lines where it has a space."""
    picture = images[images["image"] == number]
    name = str(picture["class"].iloc[0]) if len(picture) and "class" in picture else f"image {number}"
    return (f"class {name}" if name.isdigit() else name).replace(" ", "\n", 1)


def draw_foreground(areas: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw a panel a kind of map: a line for the mean over heads, a dot for each head, the null dashed."""
    kinds = [kind for kind in TITLES if kind in set(areas["kind"])]
    figure, every = panels(len(kinds))
    palette = Palette()
    for axes, kind in zip(every, kinds, strict=True):
        _panel(axes, areas[areas["kind"] == kind], palette)
        axes.set_title(TITLES[kind])
    every[0].set_ylabel("area under\nthe ROC curve")
    legend_above(figure, *every)
    caption = audit_caption(areas, "lines: mean over heads; dots: each head, mean over seeds; 0.5 is chance")
    return [save(figure, folder, "foreground", caption)]


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
