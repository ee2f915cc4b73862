"""One point of a sweep: which run is its, and how it is trained, wherever that is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch

from kattn_cli.console import console, progress_bar
from kattn_cli.device import resolve_device
from kattn_cli.experiment.resume import find_same
from kattn_cli.experiment.training_run import Job, train_one
from kattn_cli.recipe.schema import Recipe
from kattn_cli.recipe.sweep import Point
from kattn_cli.runs.find import all_runs
from kattn_cli.runs.lock import holding
from kattn_cli.runs.whole_file import make_folder

OWN_FILES = ".sweep"
"""Locks and logs, in the folder of the recipe's runs."""


@dataclass(frozen=True)
class PointTask:
    """What a worker needs to know; ``results`` is an absolute path, ``device`` means one of the worker's machine."""

    point: Point
    overrides: tuple[str, ...]
    results: Path
    device: str
    threads: int


def lock_of(results: Path, recipe: Recipe) -> Path:
    """Return the lock that a process holds while it trains ``recipe`` in a sweep; two processes mean the same one."""
    digest = hashlib.sha256(recipe.to_yaml().encode()).hexdigest()
    return results / recipe.name / OWN_FILES / f"{digest[:20]}.lock"


def train_point(task: PointTask) -> str:
    """Train one point, or go on with its run, or leave a finished one as it is; returns the run's folder.

    Raises:
        Held: if another process is at it.
        Stopped, KattnError: as :func:`train_one`.
    """
    torch.set_num_threads(task.threads)
    console.quiet = True
    recipe = task.point.recipe
    folder = task.results / recipe.name
    lock = lock_of(task.results, recipe)
    make_folder(lock.parent)
    with holding(lock, f"{folder}: {task.point} is being trained"):
        found = find_same(recipe, all_runs(folder))
        if found and found.done:
            return str(found.run.folder)
        job = Job(recipe, (*task.overrides, *task.point.overrides), task.results, resolve_device(task.device), found)
        with progress_bar("epoch") as bar:
            return str(train_one(job, bar).folder)
