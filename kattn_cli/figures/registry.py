"""Every figure but the audit's, by name, for ``kattn plot`` and ``kattn report``: a file here, a line below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from kattn_cli.errors import NothingToDraw
from kattn_cli.figures.benchmark import draw_benchmark
from kattn_cli.figures.complexity import draw_complexity
from kattn_cli.figures.corruptions import corruption_frame, draw_corruptions
from kattn_cli.figures.curves import draw_curves, several_epochs
from kattn_cli.figures.decoding import draw_decoding
from kattn_cli.figures.kernel_pca import draw_kernel_pca
from kattn_cli.figures.model_costs import draw_model_costs
from kattn_cli.figures.perplexity import draw_perplexity
from kattn_cli.figures.robustness import draw_robustness
from kattn_cli.figures.rollouts import draw_rollouts
from kattn_cli.figures.segmentation import draw_segmentation
from kattn_cli.figures.spectrum import draw_spectra
from kattn_cli.runs.cost_table import Kind
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import attack_frame, frame
from kattn_cli.tables.values import asked_for, own_perplexities, segmentation_frame

OfRuns = Callable[[Sequence[Run], Path], list[Path]]
"""Draws what the tables of these runs allow into a folder, and returns the files: none where there is nothing."""
OfTable = Callable[[pd.DataFrame, Path, str], "Path | list[Path]"]
"""Draws a table of costs into a folder, under that name."""


def from_rows(rows: Callable[[Sequence[Run]], pd.DataFrame], draw: Callable[[pd.DataFrame, Path], Path]) -> OfRuns:
    """Return a figure of runs that draws the ``rows`` of theirs, where there are any."""

    def draw_runs_of(runs: Sequence[Run], folder: Path) -> list[Path]:
        data = rows(runs)
        return [] if data.empty else [draw(data, folder)]

    return draw_runs_of


FIGURES: dict[str, OfRuns] = {
    "curves": from_rows(lambda runs: several_epochs(frame(runs, "metrics.csv")), draw_curves),
    "robustness": from_rows(attack_frame, draw_robustness),
    "corruptions": from_rows(lambda runs: corruption_frame(frame(runs, "eval.csv")), draw_corruptions),
    "perplexity": from_rows(own_perplexities, draw_perplexity),
    "segmentation": from_rows(lambda runs: segmentation_frame(frame(runs, "segmentation.csv")), draw_segmentation),
    "rollouts": from_rows(asked_for, draw_rollouts),
    "spectra": draw_spectra,
}
"""Of runs, in the order in which they are drawn."""

COST_FIGURES: Mapping[Kind, OfTable] = {
    "complexity": draw_complexity,
    "kernel-pca": draw_kernel_pca,
    "models": draw_model_costs,
    "decoding": draw_decoding,
    "benchmark": draw_benchmark,
}
"""Of tables that belong to no run, by what they are of."""


def draw_cost_table(kind: Kind, table: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Draw a table of costs.

    Raises:
        NothingToDraw: if it has no row to draw.
    """
    if "status" in table and not (table["status"] == "ok").any():
        raise NothingToDraw(f"{name}.csv: has no measurement that went well, so there is nothing to draw")
    pictures = COST_FIGURES[kind](table, folder, name)
    return pictures if isinstance(pictures, list) else [pictures]
