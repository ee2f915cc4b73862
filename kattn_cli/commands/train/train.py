"""``kattn train``: one run for each recipe and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from kattn_cli.console import console, progress_bar
from kattn_cli.errors import KattnError
from kattn_cli.executors.local import in_parallel
from kattn_cli.experiment import recipes
from kattn_cli.experiment.resume import find_unfinished
from kattn_cli.experiment.training_run import Job, train_one
from kattn_cli.recipe.schema import per_seed
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import best_epoch
from kattn_cli.training.distributed import World, join


def train(
    references: Sequence[str],
    overrides: Sequence[str],
    seeds: Sequence[int],
    *,
    results: Path,
    device: torch.device,
    resume: bool = False,
    force: bool = False,
    jobs: int = 1,
) -> list[Run]:
    """Train every recipe with every seed (by default the recipe's own), ``jobs`` at a time.

    All recipes are read before any work, so a fault of one stops all. Returns the runs as they finished. Under
    ``torchrun`` each process calls this, and together they train one run after the other.
    """
    with join(device) as world, world.lost_peer():
        console.quiet = console.quiet or not world.main
        if world.size > 1 and jobs > 1:
            raise KattnError("--jobs trains several runs at once, torchrun one run in several processes: not both")
        plan, done = world.on_main(
            lambda: _plan(references, overrides, seeds, results, device, find=resume, force=force)
        )
        return done + list(_train_all(plan, jobs, world))


def _plan(
    references: Sequence[str],
    overrides: Sequence[str],
    seeds: Sequence[int],
    results: Path,
    device: torch.device,
    *,
    find: bool,
    force: bool,
) -> tuple[list[Job], list[Run]]:
    """Return what is to be trained, all recipes read; and, with ``find``, the runs in which nothing is left to do."""
    asked = [
        (recipe, source.path)
        for source, loaded in recipes.load_each(references, overrides, weights=not find)
        for recipe in per_seed(loaded, seeds)
    ]
    plan, done = [], []
    for recipe, path in asked:
        resumed = find_unfinished(recipe, path, results, force=force, tell=console.print) if find else None
        if resumed and resumed.done:
            console.print(f"{resumed.run.folder}: is finished")
            done.append(resumed.run)
        else:
            plan.append(Job(recipe, tuple(overrides), results, device, resumed))
    return plan, done


def _train_all(plan: Sequence[Job], jobs: int, world: World) -> Iterator[Run]:
    if jobs == 1:
        with progress_bar("epoch") as bar:
            for job in plan:
                yield train_one(job, bar, world)
        return
    with progress_bar("run") as bar:
        overall = bar.add_task(f"{jobs} at a time", total=len(plan), count=f"0/{len(plan)}", note="")
        for number, run in enumerate(in_parallel(_train_quietly, [(job,) for job in plan], jobs), 1):
            console.print(f"{run.folder}: {run.manifest['train_seconds']:.0f} s, {best_epoch(run)}")
            bar.update(overall, completed=number, count=f"{number}/{len(plan)}")
            yield run


def _train_quietly(job: Job) -> Run:
    """In a worker: train without a bar."""
    console.quiet = True
    with progress_bar("epoch") as bar:
        return train_one(job, bar)
