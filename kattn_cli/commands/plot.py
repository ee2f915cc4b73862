"""``kattn plot``: every figure that the tables of some runs allow, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kattn_cli.commands.comparison import print_comparison
from kattn_cli.errors import RunError
from kattn_cli.figures.corruptions import corruption_frame, draw_corruptions
from kattn_cli.figures.curves import draw_curves
from kattn_cli.figures.frames import attack_frame, frame
from kattn_cli.figures.paper_tables import markdown, paper_tables
from kattn_cli.figures.robustness import draw_robustness
from kattn_cli.figures.spectrum import draw_spectrum
from kattn_cli.results import Run, write_text


def plot_runs(runs: Sequence[Run], folder: Path, paper: str | None = None) -> list[Path]:
    """Draw into ``folder``, with ``comparison.csv`` beside the figures; returns the files but the latter.

    Args:
        paper: ``rpc``: also its robustness tables with ours beside its numbers, ``paper_rpc.csv`` and ``paper_rpc.md``.

    Raises:
        RunError: if the runs have no tables to draw.
    """
    drawn = [
        (draw_curves, frame(runs, "metrics.csv")),
        (draw_robustness, attack_frame(runs)),
        (draw_corruptions, corruption_frame(frame(runs, "eval.csv"))),
        (draw_spectrum, frame(runs, "spectrum.csv")),
    ]
    pictures = [draw(data, folder) for draw, data in drawn if not data.empty]
    if not pictures:
        raise RunError(f"{', '.join(str(run.folder) for run in runs)}: has no tables to draw yet")
    print_comparison(runs).to_csv(folder / "comparison.csv", index=False)
    return [*pictures, *(_paper(runs, folder, paper) if paper else [])]


def _paper(runs: Sequence[Run], folder: Path, paper: str) -> list[Path]:
    table = paper_tables(runs)
    if table.empty:
        raise RunError(f"--paper {paper}: the runs have none of its numbers; kattn eval and kattn attack measure them")
    written = [folder / f"paper_{paper}.{suffix}" for suffix in ("csv", "md")]
    table.to_csv(written[0], index=False)
    write_text(written[1], markdown(table))
    return written
