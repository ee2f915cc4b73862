"""``kattn plot``: every figure that the tables of some runs allow, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kattn_cli.commands.comparison import print_comparison
from kattn_cli.errors import RunError
from kattn_cli.figures.curves import draw_curves
from kattn_cli.figures.frames import frame
from kattn_cli.figures.robustness import draw_robustness
from kattn_cli.figures.spectrum import draw_spectrum
from kattn_cli.results import Run

DRAWN = {
    "metrics.csv": draw_curves,
    "attacks.csv": draw_robustness,
    "spectrum.csv": draw_spectrum,
}


def plot_runs(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw into ``folder``, with ``comparison.csv`` beside the figures; returns the pictures.

    Raises:
        RunError: if the runs have no tables to draw.
    """
    pictures = []
    for table, draw in DRAWN.items():
        data = frame(runs, table)
        if not data.empty:
            pictures.append(draw(data, folder))
    if not pictures:
        raise RunError(f"{', '.join(str(run.folder) for run in runs)}: has no tables to draw yet")
    print_comparison(runs).to_csv(folder / "comparison.csv", index=False)
    return pictures
