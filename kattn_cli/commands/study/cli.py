"""``kattn study``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import DeviceOption, QuietOption, ResultsOption, silence_profiler
from kattn_cli.commands.sweep.cli import Where, cluster_settings
from kattn_cli.errors import KattnError
from kattn_cli.runs.provenance import as_typed

EXAMPLE = "Example:  kattn study quick --jobs 2"


def study(
    references: Annotated[
        list[str] | None,
        typer.Argument(metavar="STUDY...", help="Files of studies, or names of shipped ones.", show_default=False),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="The shipped studies and their questions.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print what is missing; train and measure nothing.")] = False,
    no_train: Annotated[bool, typer.Option("--no-train", help="Measure and judge what is trained.")] = False,
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="Judge what was measured; train and measure nothing.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Train or measure so many at once.")] = 1,
    on: Annotated[
        Where, typer.Option(help="Train here, on SLURM through submitit, or on a Ray cluster.")
    ] = Where.local,
    cpus: Annotated[int | None, typer.Option(min=1, help="Cores a run, as kattn sweep takes it.")] = None,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs a run; here 0 lets each run see all.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="SLURM: a parameter by submitit's name.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="Ray: the cluster.")] = None,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Answer a question: train and measure what is missing, judge, and write one page.

    What a study says when it first runs is kept with its date; a change afterwards is shown on the page. Stopped, the
    same command goes on.
    """
    from kattn_cli.console import console
    from kattn_cli.studies.study import find_study, load_study, shipped_studies

    console.quiet = quiet
    if list_:
        for name in shipped_studies():
            console.print(f"{name}: {load_study(find_study(name)).question}")
        return
    if not references:
        raise KattnError("No study was named. For example: kattn study quick; --list shows those that come with kattn")
    studies = [load_study(find_study(reference)) for reference in references]
    silence_profiler()
    from kattn_cli.commands.study.run import Asked, print_missing, run_study
    from kattn_cli.executors import EXECUTORS, Request
    from kattn_cli.executors.local import threads_each

    threads = cpus or (threads_each(jobs) if on is Where.local else 1)
    request = Request(
        jobs,
        threads,
        gpus,
        (results / ".study" / on.value).resolve(),
        cluster_settings(on, settings or [], address),
        address,
    )
    command = as_typed()
    asked = Asked(
        results,
        EXECUTORS[on.value](request),
        threads,
        jobs,
        device,
        command,
        not (no_train or judge_only),
        not judge_only,
    )
    for one in studies:
        if dry:
            print_missing(one, results)
        else:
            run_study(one, asked)
