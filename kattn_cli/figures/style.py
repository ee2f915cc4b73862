"""One style for every figure: type, lines and formats, and for each mechanism one colour, the papers' by Okabe and Ito.

:func:`use` says once how all figures that follow look, and what they are written as.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from kattn_cli.attention import ATTENTIONS
from kattn_cli.runs.whole_file import write_bytes

mpl.use("Agg")


@dataclass(frozen=True)
class Look:
    """Type, lines and markers in points; panels are ``wide`` and ``high`` times as large as those of a paper."""

    type_size: float
    line_width: float
    marker_size: float
    wide: float
    high: float
    dots_per_inch: int

    @property
    def thin(self) -> float:
        """The width of lines that are no measurement: chance, bounds."""
        return 0.7 * self.line_width

    def size(self, width: float, height: float) -> tuple[float, float]:
        """Return a figure's size in inches from that in a paper."""
        return self.wide * width, self.high * height


LOOKS: dict[str, Look] = {
    "paper": Look(type_size=9, line_width=1.6, marker_size=3, wide=1, high=1, dots_per_inch=200),
    "slides": Look(type_size=17, line_width=3.2, marker_size=7, wide=1.4, high=1.4, dots_per_inch=120),
}
METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Without the time, so that equal figures are equal files."""

look: Look
formats: tuple[str, ...]


def use(style: str = "paper", written: Sequence[str] = ("pdf", "png")) -> None:
    """Draw in this style of :data:`LOOKS` from now on, and write these formats: of pdf, png and svg."""
    global look, formats
    look, formats = LOOKS[style], tuple(dict.fromkeys(written))
    plt.rcParams.update(
        {
            "font.size": look.type_size,
            "axes.titlesize": "medium",
            "axes.linewidth": look.line_width / 2,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "grid.linewidth": look.line_width / 2.7,
            "legend.frameon": False,
            "lines.linewidth": look.line_width,
            "lines.markersize": look.marker_size,
            "figure.dpi": 150,
            "savefig.dpi": look.dots_per_inch,
            "image.cmap": "viridis",
            "image.interpolation": "nearest",
            "pdf.fonttype": 42,
            "svg.hashsalt": "kattn",
        }
    )


use()

COLOURS = {name: card.colour for name, card in ATTENTIONS.items()}
OTHERS = ("#17BECF", "#7B0051", "#7F5AF0", "#1F3A93")
"""For mechanisms of one's own: by name, so that one of them has its colour in every figure."""

DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (7, 1)), (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (9, 4)))
MANY = 8
"""Lines in one figure from which on its legend is small."""
WIDE = 100.0


class Palette:
    """A colour for each mechanism, and a dash pattern that tells apart what shares a colour."""

    def __init__(self) -> None:
        self._others: dict[str, str] = {}
        self._labels: dict[str, list[str]] = {}

    def line(self, mechanism: str, label: str) -> dict[str, Any]:
        """Return matplotlib's ``color`` and ``linestyle`` for one labelled line."""
        colour = COLOURS.get(mechanism) or self._others.get(mechanism) or self._other(mechanism)
        labels = self._labels.setdefault(colour, [])
        if label not in labels:
            labels.append(label)
        return {"color": colour, "linestyle": DASHES[labels.index(label) % len(DASHES)]}

    def _other(self, mechanism: str) -> str:
        first = crc32(mechanism.encode()) % len(OTHERS)
        order = [*OTHERS[first:], *OTHERS[:first]]
        free = [colour for colour in order if colour not in self._others.values()]
        return self._others.setdefault(mechanism, (free or order)[0])


COLUMNS = 3
"""Panels beside each other; more go below."""


def panels(count: int, height: float = 2.9, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """Return ``count`` panels, at most :data:`COLUMNS` in a row (four in two rows); one alone is wider."""
    columns = 2 if count == 4 else min(count, COLUMNS)
    figure, axes = grid(-(-count // columns), columns, height, sharey="all" if sharey else "none")
    for spare in axes.flat[count:]:
        spare.set_visible(False)
    return figure, list(axes.flat[:count])


def leftmost(axes: Sequence[Axes]) -> list[Axes]:
    """Return those of these panels that begin a row."""
    return [one for one in axes if (place := one.get_subplotspec()) and place.is_first_col()]


def grid(
    rows: int, columns: int, height: float = 2.9, sharey: Literal["none", "row", "all"] = "none"
) -> tuple[Figure, NDArray[Any]]:
    """Return panels of this height (inches in a paper) as an array of ``(rows, columns)`` axes."""
    each = 3.4 if columns <= COLUMNS else 2.7
    size = look.size(5.0 if rows * columns == 1 else each * columns + 0.4, height * rows)
    return plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=sharey, layout="constrained")


def save(figure: Figure, folder: Path, name: str, caption: str) -> Path:
    """Write ``name`` in each format that is asked for, the caption below in small type.

    Returns the path of the PNG, or of the first format where that is not among them.

    Raises:
        RunError: if it cannot be written; what was there before stays.
    """
    size = look.type_size * 2 / 3
    lines = textwrap.wrap(caption.replace(" %", "\N{NO-BREAK SPACE}%"), int(figure.get_figwidth() * 126 / size))
    figure.supxlabel("\n".join(lines), fontsize=size, color="0.4")
    _make_room(figure, 0.018 * size * (len(lines) - 1))
    written = {one: folder / f"{name}.{one}" for one in formats}
    for suffix, path in written.items():
        drawn = BytesIO()  # matplotlib's backends do not survive a full disk
        figure.savefig(drawn, format=suffix, metadata=METADATA.get(suffix))
        write_bytes(path, drawn.getvalue())
    plt.close(figure)
    return written.get("png") or next(iter(written.values()))


def legend_above(figure: Figure, *axes: Axes) -> None:
    """Put one legend of these panels' lines outside all panels; small and with room of its own where it is long."""
    lines: dict[str, Artist] = {}
    for one in axes:
        for line, label in zip(*one.get_legend_handles_labels(), strict=True):
            lines.setdefault(label, line)
    labels, handles = list(lines), list(lines.values())
    size = look.type_size * (1 if len(labels) <= MANY else 7 / 9)
    letters = max(map(len, labels), default=0) + 8
    columns = max(1, min(len(labels), int(figure.get_figwidth() * 117 / size / letters)))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=size, handlelength=2.6)
    _make_room(figure, 0.019 * size * max(0, -(-len(labels) // columns) - 1))


def band(axes: Axes, x: pd.Series | pd.Index, low: pd.Series, high: pd.Series, colour: str, lines: int) -> None:
    """Draw an interval around a line: the paler, the more ``lines`` there are."""
    axes.fill_between(x, low, high, color=colour, alpha=min(0.12, 1 / lines), linewidth=0)


def _make_room(figure: Figure, inches: float) -> None:
    figure.set_figheight(figure.get_figheight() + inches)


def side_by_side(index: float, count: int, width: float = 0.6) -> float:
    """Return how far from its place the ``index``-th of ``count`` marks stands, that share ``width`` of the axis."""
    return width * ((index + 0.5) / count - 0.5)


def integer_ticks(axes: Axes) -> None:
    """Set whole numbers on the x axis."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def log_if_wide(axes: Axes, values: Sequence[float] | pd.Series) -> None:
    """Set a logarithmic y axis where ``values`` are positive and span two powers of ten; else one from 0 on."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if len(known) and known.min() > 0 and known.max() > WIDE * known.min():
        axes.set_yscale("log")
    elif len(known) and known.min() >= 0:
        from_zero(axes)


def from_zero(axes: Axes) -> None:
    """Let the y axis begin at 0, with room above all that is drawn; also for the panels that share it."""
    highest = max(one.dataLim.y1 for one in axes.get_shared_y_axes().get_siblings(axes))
    if np.isfinite(highest) and highest > 0:
        axes.set_ylim(0, 1.06 * highest)
