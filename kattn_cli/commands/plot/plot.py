"""``kattn plot``: every figure that the tables of some runs allow, and their comparison."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from kattn_cli.audit.items import draw_audit
from kattn_cli.errors import RunError
from kattn_cli.figures.registry import FIGURES, draw_cost_table
from kattn_cli.papers.beside import beside
from kattn_cli.papers.paper import Paper
from kattn_cli.papers.text import as_markdown, print_sections, sections
from kattn_cli.papers.values import measured
from kattn_cli.runs.cost_table import read_cost_table
from kattn_cli.runs.run import Run, Snapshot
from kattn_cli.runs.whole_file import write_text
from kattn_cli.tables.summary import print_summary
from kattn_cli.tables.text import write_frame

MOST_LABELS = 100
"""Lines that a figure can hold at all; seeds of one label are one line."""


def plot_runs(runs: Sequence[Run], folder: Path, paper: Paper | None = None) -> list[Path]:
    """Draw into ``folder``, with ``comparison.csv`` beside the figures; return the files but the latter.

    Args:
        paper: also its tables, with ours beside its numbers: printed and as ``paper_<name>.csv`` and
            ``paper_<name>.md``.

    Raises:
        RunError: if the runs have no tables to draw, or are too many for a figure.
    """
    runs = list(map(Snapshot.of, runs))
    if (labels := len({run.label for run in runs})) > MOST_LABELS:
        raise RunError(
            f"{len(runs):,} runs of {labels:,} labels are too many for a figure, which holds {MOST_LABELS}; "
            f"name some of them, as in kattn plot {shlex.quote(runs[0].name)}, or let kattn report draw each group"
        )
    pictures = draw_runs(runs, folder)
    if not pictures:
        raise RunError(f"{', '.join(str(run.folder) for run in runs)}: has no tables to draw yet")
    write_frame(folder / "comparison.csv", print_summary(runs))
    return [*pictures, *(_paper(runs, folder, paper) if paper else [])]


def draw_runs(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw every figure that the tables of the runs allow, and those of the audit's items."""
    pictures = [picture for draw in FIGURES.values() for picture in draw(runs, folder)]
    return [*pictures, *draw_audit(runs, folder)]


def plot_table(path: Path, folder: Path | None = None) -> list[Path]:
    """Draw a table that belongs to no run, under its own name, beside it or into ``folder``.

    Raises:
        RunError: if it cannot be read, is none of these, or has no row to draw.
    """
    kind, table = read_cost_table(path)
    return draw_cost_table(kind, table, folder or path.parent, path.stem)


def _paper(runs: Sequence[Run], folder: Path, paper: Paper) -> list[Path]:
    table = beside(measured(runs), paper)
    if table.empty:
        raise RunError(
            f"--paper {paper.name}: the runs have none of its numbers; kattn eval and kattn attack measure them"
        )
    written = [folder / f"paper_{paper.name}.{suffix}" for suffix in ("csv", "md")]
    write_frame(written[0], table)
    text = sections(table, paper)
    write_text(written[1], as_markdown(text))
    print_sections(text)
    return written
