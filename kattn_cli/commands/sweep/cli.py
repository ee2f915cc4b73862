"""``kattn sweep``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

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
)
from kattn_cli.errors import KattnError
from kattn_cli.runs.provenance import as_typed

EXAMPLE = (
    "Example:  kattn sweep mechanisms/primal train.epochs=3 --over attention.eta=[0,0.1] --over seed=[0,1] --jobs 2"
)


class Where(str, Enum):
    """Where the runs of a sweep are trained."""

    local = "local"
    slurm = "slurm"
    ray = "ray"


def sweep(
    arguments: RecipesAndOverrides,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over", metavar="KEY=[VALUES]", help="A key to sweep over; repeat for a grid.", show_default=False
        ),
    ] = None,
    seed: SeedOption = None,
    jobs: Annotated[int, typer.Option(min=1, help="Train so many at once.")] = 1,
    on: Annotated[Where, typer.Option(help="This machine, SLURM through submitit, or a Ray cluster.")] = Where.local,
    cpus: Annotated[
        int | None, typer.Option(min=1, help="Cores a run. [default: this machine's, shared out; on a cluster 1]")
    ] = None,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs a run; here 0 lets each run see all.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="SLURM: a parameter by submitit's name (partition, time, …)."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Ray: the cluster. [default: the one that runs, else this machine]")
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print the points and their recipes; train nothing.")] = False,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Train the points of a grid or a list, here or on a cluster; started again, it goes on where it was."""
    references, overrides = references_and_overrides(arguments)
    if not references:
        raise KattnError("No recipe was named. For example: kattn sweep sweeps/primal_eta_s --jobs 2")
    given = cluster_settings(on, settings or [], address)
    silence_profiler()
    from kattn_cli.commands.sweep.point import OWN_FILES
    from kattn_cli.commands.sweep.sweep import Settings, plan
    from kattn_cli.commands.sweep.sweep import sweep as run_sweep
    from kattn_cli.commands.sweep.view import points_table, ranking
    from kattn_cli.console import console
    from kattn_cli.device import resolve_device
    from kattn_cli.executors import EXECUTORS, Request
    from kattn_cli.executors.local import threads_each

    console.quiet = quiet
    records = plan(references, overrides, over or [], seed or [], results)
    if dry:
        for record in records:
            console.print(f"{record.folder}: {len(record.points)} points; a dry run, nothing is trained")
            console.print(points_table(record))
        return
    if on is Where.local:
        resolve_device(device)
    threads = cpus or (threads_each(jobs) if on is Where.local else 1)
    request = Request(jobs, threads, gpus, (results / OWN_FILES / on.value).resolve(), given, address)
    command = as_typed()
    run_sweep(records, EXECUTORS[on.value](request), Settings(tuple(overrides), device, threads, command))
    if quiet:
        return
    for record in records:
        console.print(f"{record.folder / 'sweep.csv'}, the best epoch of each run:")
        console.print(ranking(record))
    names = next_arguments([record.points[0].recipe.name for record in records], results)
    console.print(f"Next: kattn eval {names}, and kattn report {names}")


def cluster_settings(on: Where, settings: list[str], address: str | None) -> dict[str, Any]:
    """Return ``--set partition=gpu`` as a name and a value.

    Raises:
        KattnError: if one is not of that form, or is for another place than the one that was chosen.
    """
    if settings and on is not Where.slurm:
        raise KattnError("--set: is for SLURM, so it goes with --on slurm")
    if address and on is not Where.ray:
        raise KattnError("--address: is a Ray cluster's, so it goes with --on ray")
    from kattn_cli.recipe.strict_yaml import parse

    given = {}
    for one in settings:
        name, equals, text = one.partition("=")
        value = parse(text)
        if not name or not equals or value.faults:
            raise KattnError(f"--set {one}: expected NAME=VALUE, for example partition=gpu or time=60")
        given[name] = value.data
    return given
