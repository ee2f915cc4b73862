"""Segmentation in figures: over the severity of corruption, and sheets of what a model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib.patches import Patch
from numpy.typing import NDArray

from kattn_cli.figures import style
from kattn_cli.figures.contact_sheet import tiled
from kattn_cli.figures.lines import mean_lines
from kattn_cli.figures.style import Palette, integer_ticks, legend_above, panels, save
from kattn_cli.tables.frames import seeds_caption

QUANTITIES = {"mean_iou": "mean IoU", "mean_accuracy": "mean accuracy"}
INCHES = 0.9
"""Of each picture of a sheet."""
NAMED = 20
"""Classes up to which a sheet names their colours."""


def draw_segmentation(rows: pd.DataFrame, folder: Path) -> Path:
    """Draw mean IoU and mean accuracy over the severity, the mean over types.

    Args:
        rows: of :func:`~kattn_cli.tables.values.segmentation_frame`.
    """
    figure, every = panels(len(QUANTITIES))
    palette = Palette()
    for axes, (column, name) in zip(every, QUANTITIES.items(), strict=True):
        mean_lines(axes, rows, "severity", column, palette)
        axes.set_ylabel(f"{name} (%)")
        if rows["severity"].max() > 0:
            axes.set_xlabel("severity (0: clean)")
            integer_ticks(axes)
        else:
            axes.set_xlabel("clean images")
            axes.set_xticks([])
    legend_above(figure, *every)
    images = ", ".join(f"{count:,}" for count in sorted(rows["images"].unique()))
    types = rows.loc[rows["severity"] > 0, "corruption"].nunique()
    over = [f"mean over {types} types of corruption"] if types else []
    several = rows.groupby("label")["run_seed"].nunique().max() > 1
    intervals = ["95 % intervals over seeds (Student-t)"] if several else []
    caption = "; ".join([seeds_caption(rows), f"{images} test images", *over, *intervals])
    return save(figure, folder, "segmentation_severity", caption)


@dataclass(frozen=True)
class Predicted:
    """An image ``(S, S, channels)`` in [0, 1], the classes that label it, and those that a model predicts, ``(S, S)``.

    A label that is none of the classes is drawn white.
    """

    image: NDArray[np.floating]
    labelled: NDArray[np.integer]
    predicted: NDArray[np.integer]


def draw_sheet(pictures: Sequence[Predicted], class_names: Sequence[str], folder: Path, caption: str) -> Path:
    """Draw images in a row, below them their labels, and below these the model's classes; ``segmentation.png``."""
    paint = _colours(len(class_names))
    rows = [
        [np.broadcast_to(one.image, (*one.image.shape[:2], 3)) for one in pictures],
        [_painted(one.labelled, paint) for one in pictures],
        [_painted(one.predicted, paint) for one in pictures],
    ]
    height, width = pictures[0].image.shape[:2]
    gap = max(1, width // 16)
    sheet = tiled(rows, gap)
    names = list(class_names) if len(class_names) <= NAMED else []
    size = style.look.size(max(5.0, INCHES * len(pictures) + 0.9), INCHES * 3 + 0.4 + 0.3 * -(-len(names) // 6))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    axes.imshow(sheet, extent=(0, sheet.shape[1], sheet.shape[0], 0), interpolation="nearest")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize="small", labelbottom=False)
    axes.set_yticks([row * (height + gap) + height / 2 for row in range(3)], ["image", "labels", "model"])
    patches = [Patch(facecolor=paint[number], label=name) for number, name in enumerate(names)]
    if patches:
        figure.legend(handles=patches, loc="outside upper center", ncols=min(6, len(patches)), fontsize="small")
    return save(figure, folder, "segmentation", caption)


def _colours(count: int) -> NDArray[np.floating]:
    """Return a colour for each class, and white behind them for no label."""
    if count <= NAMED:
        paint = list(plt.get_cmap("tab20")(range(count))[:, :3])
    else:
        paint = [colors.hsv_to_rgb((0.61803 * n % 1, 0.45 + 0.5 * (n % 2), 0.95 - 0.2 * (n % 3))) for n in range(count)]
    return np.array([*paint, (1.0, 1.0, 1.0)])


def _painted(labels: NDArray[np.integer], paint: NDArray[np.floating]) -> NDArray[np.floating]:
    return paint[np.minimum(labels, len(paint) - 1)]
