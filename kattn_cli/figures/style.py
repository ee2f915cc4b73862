"""One style for every figure: the same mechanism always has the same colour, the papers' first by Okabe and Ito."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

COLOURS = {
    "softmax": "#000000",
    "symmetric": "#0072B2",
    "scaled": "#56B4E9",
    "rpc": "#D55E00",
    "primal": "#009E73",
    "tssa": "#CC79A7",
    "xca": "#E69F00",
    "mssa": "#8C510A",
    "class_attention": "#4D4D4D",
    "linear": "#E31A1C",
    "performer": "#6A3D9A",
    "cosformer": "#B8A200",
    "flowformer": "#1B9E9E",
    "reformer": "#B2DF8A",
    "longformer": "#FB9A99",
    "bigbird": "#999999",
    "linformer": "#666600",
    "nystromformer": "#A6CEE3",
    "soft": "#CAB2D6",
    "yoso_e": "#FDBF6F",
}
OTHERS = ("#17BECF", "#7B0051", "#9ACD32", "#1F3A93")
"""For mechanisms of one's own."""

DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (7, 1)), (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (9, 4)))
MANY = 8
"""Lines in one figure from which on its legend is small."""

mpl.use("Agg")
plt.rcParams.update(
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "figure.dpi": 150,
        "savefig.dpi": 200,
        "pdf.fonttype": 42,
    }
)


class Palette:
    """A colour for each mechanism, and a dash pattern that tells apart what shares a colour."""

    def __init__(self) -> None:
        self._others: list[str] = []
        self._labels: dict[str, list[str]] = {}

    def line(self, mechanism: str, label: str) -> dict[str, Any]:
        """matplotlib's ``color`` and ``linestyle`` for one labelled line."""
        if mechanism not in COLOURS and mechanism not in self._others:
            self._others.append(mechanism)
        colour = COLOURS.get(mechanism) or OTHERS[self._others.index(mechanism) % len(OTHERS)]
        labels = self._labels.setdefault(colour, [])
        if label not in labels:
            labels.append(label)
        return {"color": colour, "linestyle": DASHES[labels.index(label) % len(DASHES)]}


COLUMNS = 3
"""Panels beside each other; more go below."""


def panels(count: int, height: float = 2.9, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """``count`` panels of this height, in rows of at most :data:`COLUMNS`; a single one is wider."""
    columns = min(count, COLUMNS)
    rows = -(-count // columns)
    size = (5.0 if count == 1 else 3.4 * columns + 0.4, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=sharey, layout="constrained")
    for spare in axes.flat[count:]:
        spare.set_visible(False)
    return figure, list(axes.flat[:count])


def save(figure: Figure, folder: Path, name: str, caption: str) -> Path:
    """Write ``name.pdf`` and ``name.png`` with the caption below in small type; returns the picture's path."""
    lines = textwrap.wrap(caption, int(figure.get_figwidth() * 21))
    figure.supxlabel("\n".join(lines), fontsize=6, color="0.4")
    _make_room(figure, 0.11 * max(0, len(lines) - 2))
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("pdf", "png"):
        figure.savefig(folder / f"{name}.{suffix}")
    plt.close(figure)
    return folder / f"{name}.png"


def legend_above(figure: Figure, *axes: Axes) -> None:
    """One legend of these panels' lines, outside all panels; small and with room of its own where it is long."""
    lines: dict[str, Artist] = {}
    for one in axes:
        for line, label in zip(*one.get_legend_handles_labels(), strict=True):
            lines.setdefault(label, line)
    labels, handles = list(lines), list(lines.values())
    size = 9 if len(labels) <= MANY else 7
    letters = max(map(len, labels), default=0) + 8
    columns = max(1, min(len(labels), int(figure.get_figwidth() * 117 / size / letters)))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=size, handlelength=2.6)
    _make_room(figure, 0.019 * size * max(0, -(-len(labels) // columns) - 2))


def band(axes: Axes, x: pd.Series | pd.Index, low: pd.Series, high: pd.Series, colour: str, lines: int) -> None:
    """An interval around a line: the paler, the more ``lines`` there are."""
    axes.fill_between(x, low, high, color=colour, alpha=min(0.12, 1 / lines), linewidth=0)


def _make_room(figure: Figure, inches: float) -> None:
    figure.set_figheight(figure.get_figheight() + inches)


def integer_ticks(axes: Axes) -> None:
    """Whole numbers on the x axis."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
