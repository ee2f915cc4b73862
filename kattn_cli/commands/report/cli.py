"""``kattn report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import Paper, QuietOption, ResultsOption, paper_option, silence_profiler
from kattn_cli.errors import KattnError

EXAMPLE = "Example:  kattn report results/reference --paper rpc --paper primal --paper tost"


def report(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|TABLE.csv|FOLDER",
            help="Runs: folders, or names under the results folder. Tables of kattn complexity, benchmark or "
            "kernel-pca. Folders with any of these below. [default: all runs but the reference]",
            show_default=False,
        ),
    ] = None,
    paper: Annotated[
        list[Paper] | None,
        paper_option("Also the paper's tables with ours beside, and a verdict for each of its claims; repeat."),
    ] = None,
    title: Annotated[str, typer.Option(help="Of the page.")] = "Report",
    output: Annotated[
        Path | None, typer.Option(help="Folder for the page and its files. [default: report in the results folder]")
    ] = None,
    test: Annotated[str, typer.Option(hidden=True)] = "",
    figures: Annotated[bool, typer.Option(help="Whether to draw the figures, which takes longest.")] = True,
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """One page from many runs: tables, comparisons, figures, cost, settings, where it comes from.

    As Markdown, as an HTML file that needs nothing beside it, and each table as CSV and LaTeX.
    """
    if test:
        raise KattnError(f"--test {test}: there is one way to a verdict now, which pools the variance; leave it out")
    silence_profiler()
    from kattn_cli.commands.report.run import report as write_report
    from kattn_cli.commands.report.sources import find_sources
    from kattn_cli.console import console

    console.quiet = quiet
    found = find_sources(sources or [], results)
    for one in found.left_out:
        console.print(f"Left out: {one}")
    folder = output or results / "report"
    for path in write_report(found, folder, papers=paper or [], title=title, figures=figures):
        console.print(path)
