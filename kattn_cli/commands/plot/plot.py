"""``kattn plot``: every figure that the tables of some runs allow, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from kattn_cli.audit.items import draw_audit
from kattn_cli.errors import RunError
from kattn_cli.figures.benchmark import draw_benchmark
from kattn_cli.figures.complexity import draw_all
from kattn_cli.figures.corruptions import corruption_frame, draw_corruptions
from kattn_cli.figures.curves import draw_curves
from kattn_cli.figures.decoding import draw_decoding
from kattn_cli.figures.effective_rank import draw_effective_rank, draw_spectrum_epochs
from kattn_cli.figures.kernel_pca import draw_kernel_pca
from kattn_cli.figures.model_costs import draw_model_costs
from kattn_cli.figures.perplexity import draw_perplexity
from kattn_cli.figures.robustness import draw_robustness
from kattn_cli.figures.rollouts import draw_rollouts
from kattn_cli.figures.segmentation import draw_segmentation
from kattn_cli.figures.spectrum import draw_spectrum
from kattn_cli.papers.paper_numbers import paper_numbers
from kattn_cli.papers.paper_sections import as_markdown
from kattn_cli.papers.printed_tables import print_sections
from kattn_cli.papers.published import PaperName
from kattn_cli.runs.cost_table import Kind, read_cost_table
from kattn_cli.runs.run import Run
from kattn_cli.runs.whole_file import write_text
from kattn_cli.tables.frames import attack_frame, frame, shared_epochs
from kattn_cli.tables.rollouts import asked_for
from kattn_cli.tables.segmentation import segmentation_frame
from kattn_cli.tables.sequence_values import own_perplexities
from kattn_cli.tables.summary import print_summary

SINGLE: dict[Kind, Callable[[pd.DataFrame, Path, str], Path]] = {
    "kernel-pca": draw_kernel_pca,
    "models": draw_model_costs,
    "decoding": draw_decoding,
    "benchmark": draw_benchmark,
}
"""Tables that make one figure."""


def plot_runs(runs: Sequence[Run], folder: Path, paper: PaperName | None = None) -> list[Path]:
    """Draw into ``folder``, with ``comparison.csv`` beside the figures; returns the files but the latter.

    Args:
        paper: also its tables, with ours beside its numbers: printed and as ``paper_<name>.csv`` and
            ``paper_<name>.md``.

    Raises:
        RunError: if the runs have no tables to draw.
    """
    pictures = draw_runs(runs, folder)
    if not pictures:
        raise RunError(f"{', '.join(str(run.folder) for run in runs)}: has no tables to draw yet")
    print_summary(runs).to_csv(folder / "comparison.csv", index=False)
    return [*pictures, *(_paper(runs, folder, paper) if paper else [])]


def draw_runs(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Every figure that the tables of the runs allow."""
    drawn: list[tuple[Callable[[pd.DataFrame, Path], Path], pd.DataFrame]] = [
        (draw_curves, _of_several_epochs(frame(runs, "metrics.csv"))),
        (draw_robustness, attack_frame(runs)),
        (draw_corruptions, corruption_frame(frame(runs, "eval.csv"))),
        (draw_perplexity, own_perplexities(runs)),
        (draw_segmentation, segmentation_frame(frame(runs, "segmentation.csv"))),
        (draw_rollouts, asked_for(runs)),
    ]
    pictures = [draw(data, folder) for draw, data in drawn if not data.empty]
    return [*pictures, *draw_spectra(runs, folder), *draw_audit(runs, folder)]


def _of_several_epochs(metrics: pd.DataFrame) -> pd.DataFrame:
    """All of them, or nothing where a single epoch makes no curve."""
    return metrics if metrics.empty or metrics["epoch"].nunique() > 1 else metrics.iloc[:0]


def draw_spectra(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Of runs whose spectra were measured: explained variance, effective rank per layer, and along epochs if kept."""
    spectra, ranks = (frame(runs, f"{name}.csv") for name in ("spectrum", "effective_rank"))
    pictures = [draw_spectrum(spectra, folder)] if len(spectra) else []
    if len(ranks):
        pictures.append(draw_effective_rank(ranks, folder))
        if shared_epochs(ranks)["epoch"].nunique() > 1:
            pictures.append(draw_spectrum_epochs(ranks, folder))
    return pictures


def plot_table(path: Path, folder: Path | None = None) -> list[Path]:
    """Draw a table that belongs to no run, under its own name, beside it or into ``folder``.

    Raises:
        RunError: if it cannot be read, is none of these, or has no row to draw.
    """
    kind, table = read_cost_table(path)
    where = folder or path.parent
    if kind != "complexity":
        return [SINGLE[kind](table, where, path.stem)]
    if not (table["status"] == "ok").any():
        raise RunError(f"{path}: has no measurement that went well, so there is nothing to draw")
    return draw_all(table, where, path.stem)


def _paper(runs: Sequence[Run], folder: Path, paper: PaperName) -> list[Path]:
    table, sections = paper_numbers(runs, paper)
    if table.empty:
        raise RunError(f"--paper {paper}: the runs have none of its numbers; kattn eval and kattn attack measure them")
    written = [folder / f"paper_{paper}.{suffix}" for suffix in ("csv", "md")]
    table.to_csv(written[0], index=False)
    write_text(written[1], as_markdown(sections))
    print_sections(sections)
    return written
