"""How figures look and what they are written as; :func:`use` says so once for all that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

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
        """Of lines that are no measurement: chance, bounds."""
        return 0.7 * self.line_width

    def size(self, width: float, height: float) -> tuple[float, float]:
        """A figure's size in inches from that in a paper."""
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
