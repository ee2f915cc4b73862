"""A recipe's data and model: what a training needs, or what can be told without samples and weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kattn_cli.console import console
from kattn_cli.data.dataset import NOT_GENERATED
from kattn_cli.data.loaded import LoadedData
from kattn_cli.models import AttentionModel, Layers
from kattn_cli.recipe.data import DataSection
from kattn_cli.recipe.schema import Recipe
from kattn_cli.tasks import source_of, task_reading


def data_of(recipe: Recipe) -> LoadedData:
    """Return the recipe's data set, loaded once a process."""
    return _load(type(recipe.data), recipe.data.model_dump_json())


@cache
def _load(kind: type[DataSection], section_json: str) -> LoadedData:
    section = kind.model_validate_json(section_json)
    task, source = source_of(section)
    for file in source.files() if task.generated else []:
        if file.status == NOT_GENERATED:
            console.print(f"{file.path}: is being generated, once", markup=False)
    return task.load(source, section)


def outline(recipe: Recipe, folder: Path | None = None) -> LoadedData:
    """Return the recipe's data as far as a model must know them; see :meth:`~kattn_cli.tasks.task.Task.outline`.

    Args:
        folder: of a run, whose vocabulary is taken in place of its text.

    Raises:
        DataError: if only files that are not here could tell.
    """
    task, source = source_of(recipe.data)
    return task.outline(source, recipe.data, folder)


def build(recipe: Recipe, data: LoadedData) -> AttentionModel:
    """Return the recipe's model for ``data``, freshly initialised."""
    return task_reading(data.reads).build(recipe, data)


def layers_on(recipe: Recipe, data: LoadedData) -> Layers:
    """Return what the mechanisms of the recipe's model are built for on ``data``."""
    task = task_reading(data.reads)
    return task.layers(recipe.model, task.length_of(data))
