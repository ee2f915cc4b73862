"""A recipe's data and model: what a training needs, or what can be told without samples and weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

from kattn_cli.console import console
from kattn_cli.costs.memory import available_bytes
from kattn_cli.data.dataset import NOT_GENERATED
from kattn_cli.data.loaded import LoadedData
from kattn_cli.errors import RecipeError
from kattn_cli.models import AttentionModel, Layers
from kattn_cli.recipe.data import DataSection
from kattn_cli.recipe.schema import Recipe
from kattn_cli.tasks import source_of, task_reading

PARAMETERS_OF_A_LAYER = 12
"""In squares of its width: those of a transformer's layer, with an MLP of four times the width."""
LARGE = 10**8
"""Parameters from which on a model is counted before it is built."""


def data_of(recipe: Recipe) -> LoadedData:
    """Return the recipe's data set, loaded once a process."""
    return _load(type(recipe.data), recipe.data.model_dump_json())


@cache
def _load(kind: type[DataSection], section_json: str) -> LoadedData:
    section = kind.model_validate_json(section_json)
    task, source = source_of(section)
    for file in source.files() if task.generated else []:
        if file.status == NOT_GENERATED:
            console.print(f"{file.path}: is being generated, once")
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
    """Return the recipe's model for ``data``, freshly initialised.

    Raises:
        RecipeError: if its weights alone need more memory than there is.
    """
    layers = layers_on(recipe, data)
    if PARAMETERS_OF_A_LAYER * layers.depth * layers.dim**2 > LARGE and torch.get_default_device().type == "cpu":
        _require_memory(recipe, data)
    model = task_reading(data.reads).build(recipe, data)
    for mechanism in model.mechanisms():
        begin: Callable[[], object] | None = getattr(mechanism, "begin", None)
        if begin:
            begin()
    return model


def _require_memory(recipe: Recipe, data: LoadedData) -> None:
    """Refuse a model that Linux would let begin, and kill when its memory is used."""
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = task_reading(data.reads).build(recipe, data)
    count = sum(one.numel() for one in model.parameters())
    try:
        free = available_bytes()
    except (OSError, StopIteration):
        return
    if 4 * count > free:
        raise RecipeError(
            f"model: its {count:,} parameters take {4 * count / 1e9:,.0f} GB of memory, and {free / 1e9:,.1f} GB are "
            "free; lower model.dim or model.depth"
        )


def layers_on(recipe: Recipe, data: LoadedData) -> Layers:
    """Return what the mechanisms of the recipe's model are built for on ``data``."""
    task = task_reading(data.reads)
    return task.layers(recipe.model, task.length_of(data))
