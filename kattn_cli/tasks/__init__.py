"""Kinds of data, one folder each: how it is loaded, modelled, trained on, evaluated and printed.

A new kind is a folder with a subclass of :class:`~kattn_cli.tasks.task.Task`, and a line in :data:`TASKS`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, overload

from kattn_cli.data import DATASETS, data_set
from kattn_cli.data.dataset import DataSet
from kattn_cli.data.images import ImageData
from kattn_cli.data.loaded import LoadedData
from kattn_cli.errors import KattnError
from kattn_cli.recipe.data import DataSection, ImageSection
from kattn_cli.recipe.model import Kinds
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.run import Run
from kattn_cli.tasks.control.task import Control
from kattn_cli.tasks.images.task import Images
from kattn_cli.tasks.masks.task import Masks
from kattn_cli.tasks.sequences.task import Sequences
from kattn_cli.tasks.task import AnyTask, Asked
from kattn_cli.tasks.text.task import Text
from kattn_cli.training.objective import Objective

TASKS: dict[str, AnyTask] = {
    "images": Images(),
    "masks": Masks(),
    "sequences": Sequences(),
    "text": Text(),
    "control": Control(),
}


def task_reading(reads: str) -> AnyTask:
    """Return the task whose data sets, loaded data or runs say that they read ``reads``.

    Raises:
        KattnError: if there is none, as for a run of another version.
    """
    for task in TASKS.values():
        if task.reads == reads:
            return task
    raise KattnError(f"there is no task for {reads}; these are known: {', '.join(one.reads for one in TASKS.values())}")


def kinds() -> Kinds:
    """Return the data section that each model section of a recipe reads."""
    return {model: task.section for task in TASKS.values() for model in task.models}


def all_data_sets() -> dict[str, type[DataSet]]:
    """Return every data set by its name in a recipe: those of :mod:`kattn_cli.data`, and those of the tasks."""
    return {**DATASETS, **{name: cls for task in TASKS.values() for name, cls in task.data_sets.items()}}


def source_of(section: DataSection) -> tuple[AnyTask, Any]:
    """Return the task and the data set that a sound data section means.

    Raises:
        DataError: if the data set's constructor refuses options that do not go together, in its own words.
    """
    source = data_set(section, all_data_sets())
    return task_reading(source.reads), source


def task_of(recipe: Recipe) -> AnyTask:
    """Return the task that a sound recipe is for."""
    return task_reading(all_data_sets()[recipe.data.name].reads)


@overload
def load_data(section: ImageSection) -> ImageData: ...


@overload
def load_data(section: DataSection) -> LoadedData: ...


def load_data(section: DataSection) -> LoadedData:
    """Return the splits that ``section`` asks for; see :meth:`~kattn_cli.tasks.task.Task.load`."""
    task, source = source_of(section)
    return task.load(source, section)


def objective_of(data: LoadedData) -> Objective:
    """Return what a model on ``data`` is trained for."""
    return task_reading(data.reads).objective(data)


def evaluate(runs: Sequence[Run], asked: Asked, given: Collection[str]) -> None:
    """Measure each run as its task does, and print what came out.

    Args:
        given: the names of the options that were given, of which each run must take all.

    Raises:
        KattnError: if a run is of a kind that an option does not go with, or two options exclude each other.
    """
    by_task: dict[str, list[Run]] = {}
    for run in runs:
        for option in given:
            kinds = [task.reads for task in TASKS.values() if option in task.options]
            if kinds and run.reads not in kinds:
                flag = f"--{option.replace('_', '-')}"
                raise KattnError(f"{run.folder}: reads {run.reads}; {flag} is for runs on {' or '.join(kinds)}")
        by_task.setdefault(run.reads, []).append(run)
    asked.check()
    for reads, alike in by_task.items():
        task_reading(reads).evaluate(alike, asked)
