"""``kattn plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import (
    FigureFormat,
    FigureStyle,
    Paper,
    QuietOption,
    ResultsOption,
    chosen_runs,
    paper_option,
)
from kattn_cli.runs.find import figures_folder

EXAMPLE = "Example:  kattn plot quickstart results/complexity/cpu.csv --style slides --format svg"


def plot(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|TABLE.csv",
            help="Runs: folders, or names under the results folder. Tables of kattn complexity, benchmark or "
            "kernel-pca. [default: the newest run]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the figures. [default: the run's own, or results/figures; beside a table]"),
    ] = None,
    formats: Annotated[
        list[FigureFormat] | None, typer.Option("--format", help="A format to write; repeat. [default: pdf and png]")
    ] = None,
    style: Annotated[FigureStyle, typer.Option(help="Sizes of type and lines.")] = FigureStyle.paper,
    paper: Annotated[
        Paper | None, paper_option("Also the paper's tables of these tasks, its numbers beside ours.")
    ] = None,
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Figures and the comparison table of some runs, and figures of tables, from CSVs alone."""
    tables = [Path(one) for one in runs or [] if one.endswith(".csv")]
    names = [one for one in runs or [] if not one.endswith(".csv")]
    chosen = chosen_runs(results, names, quiet) if names or not tables else []
    from kattn_cli.commands.plot.plot import plot_runs, plot_table
    from kattn_cli.console import console
    from kattn_cli.figures.style import use

    console.quiet = quiet
    use(style.value, [one.value for one in formats or (FigureFormat.pdf, FigureFormat.png)])
    for picture in (picture for path in tables for picture in plot_table(path, output)):
        console.print(picture)
    if chosen:
        folder = output or figures_folder(results, chosen)
        for picture in plot_runs(chosen, folder, paper):
            console.print(picture)
