"""``kattn audit``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kattn_cli.commands.options import (
    Checkpoint,
    CheckpointOption,
    DeviceOption,
    QuietOption,
    ResultsOption,
    Runs,
    chosen_runs,
    start,
)
from kattn_cli.errors import KattnError, stoppable
from kattn_cli.runs.find import figures_folder
from kattn_cli.runs.provenance import as_typed

if TYPE_CHECKING:
    import pandas as pd

    from kattn_cli.runs.cost_table import Kind
    from kattn_cli.runs.run import Run

EXAMPLE = "Example:  kattn audit quickstart --inputs 16"


def audit(
    runs: Runs = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="An item, such as projection_error or pursuit; repeat. [default: all]", show_default=False),
    ] = None,
    inputs: Annotated[int, typer.Option(min=2, help="How many validation images to measure on.")] = 32,
    permutations: Annotated[int, typer.Option(min=19, help="Of tokens, for the null of alignments.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn: outliers, permutations, random values.")] = 0,
    report: Annotated[
        bool, typer.Option("--report", help="Measure nothing: the page and the figures from the tables there are.")
    ] = False,
    table: Annotated[
        list[Path] | None,
        typer.Option(help="A CSV of kattn complexity or kernel-pca, for the page's claims on cost; repeat."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder for page and figures. [default: the run's own, or results/figures]")
    ] = None,
    checkpoint: CheckpointOption = Checkpoint.last,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """What the papers say of attention, measured on runs: tables, figures, and a page with a verdict for each claim.

    Items over training need the weights of several epochs: train with train.keep_every=2.
    """
    if report and only:
        raise KattnError("--only: says what to measure, and --report measures nothing; leave out one of them")
    chosen = chosen_runs(results, runs, quiet)
    folder = output or figures_folder(results, chosen)
    where = None if report else start(quiet, device)
    from kattn_cli.audit.items import draw_audit
    from kattn_cli.console import console
    from kattn_cli.figures.spectrum import draw_spectra
    from kattn_cli.runs.cost_table import read_cost_table

    costs = [read_cost_table(path) for path in table or []]
    if where is not None:
        from kattn_cli.commands.audit.measure import AuditSettings, audit_runs, chosen_items

        chosen_items(only or [])
        settings = AuditSettings(inputs, seed, permutations, checkpoint.value)
        with stoppable("what was measured of finished runs is in each one's audit/"):
            for run, items in audit_runs(chosen, settings, where, only or []).items():
                console.print(f"{run.folder / 'audit'}: {', '.join(items) or 'nothing to measure in this model'}")
    pictures = [*draw_audit(chosen, folder), *draw_spectra(chosen, folder)]
    for path in (*pictures, _write_page(chosen, costs, pictures, folder)):
        console.print(path)


def _write_page(
    runs: Sequence[Run], costs: Sequence[tuple[Kind, pd.DataFrame]], pictures: Sequence[Path], folder: Path
) -> Path:
    """Judge every claim, write ``audit.md`` and ``claims.csv`` into ``folder``, and return the page.

    Args:
        costs: tables of :func:`~kattn_cli.runs.cost_table.read_cost_table`.
        pictures: what the page shows, in this order.
    """
    from kattn_cli.console import console
    from kattn_cli.papers.evidence import Evidence
    from kattn_cli.papers.page import page
    from kattn_cli.papers.verdict import findings, tally
    from kattn_cli.runs.whole_file import write_text
    from kattn_cli.tables.text import write_frame

    found = findings(Evidence.of(runs, costs))
    write_frame(folder / "claims.csv", found)
    shown = [Path(os.path.relpath(path, folder)).as_posix() for path in pictures]
    write_text(folder / "audit.md", page(found, shown, as_typed()))
    console.print(f"Claims: {tally(found)}")
    return folder / "audit.md"
