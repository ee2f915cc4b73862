"""``kattn train``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import (
    DeviceOption,
    QuietOption,
    RecipesAndOverrides,
    ResultsOption,
    SeedOption,
    next_arguments,
    references_and_overrides,
    silence_profiler,
    start,
)
from kattn_cli.errors import KattnError

EXAMPLE = "Example:  kattn train quickstart/rpc train.epochs=5 attention.iterations=6 --seed 0 --seed 1"


def train(
    arguments: RecipesAndOverrides,
    seed: SeedOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of the recipe, if there is one.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="With --resume: even if the recipe has changed.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print data, model, steps and memory; train nothing.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Train so many at once, sharing the cores.")] = 1,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Train one or several recipes."""
    references, overrides = references_and_overrides(arguments)
    if not references:
        raise KattnError("No recipe was named. For example: kattn train quickstart/rpc train.epochs=5")
    silence_profiler()
    if force and not resume:
        raise KattnError("--force: says to go on even if the recipe has changed, so it goes with --resume")
    where = start(quiet, device)
    if dry:
        from kattn_cli.commands.train.dry_run import dry_run

        if os.environ.get("RANK", "0") == "0":
            processes = int(os.environ.get("WORLD_SIZE", "1"))
            dry_run(references, overrides, seed or [], results=results, processes=processes)
        return
    from kattn_cli.commands.train.train import train as run_training
    from kattn_cli.console import console
    from kattn_cli.tables.measures import best_epoch
    from kattn_cli.tasks import task_reading
    from kattn_cli.tasks.task import Task

    runs = run_training(
        references, overrides, seed or [], results=results, device=where, resume=resume, force=force, jobs=jobs
    )
    if console.quiet:
        return
    for run in runs:
        console.print(f"{run.folder}: best {best_epoch(run)}")
    names = next_arguments(_few(sorted({run.name for run in runs})), results)
    steps = {task_reading(run.reads).next_command for run in runs}
    step = steps.pop() if len(steps) == 1 else Task.next_command
    console.print(f"Next: kattn {step.format(names=names)}")


def _few(names: list[str]) -> list[str]:
    """Return the runs' names, or where there are many their folders."""
    return names if len(names) <= 3 else sorted({name.partition("/")[0] for name in names})
