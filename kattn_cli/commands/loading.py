"""From a run's folder back to its recipe, its model and its data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from kattn_cli.commands import recipes
from kattn_cli.console import console
from kattn_cli.data import ImageData, load_data
from kattn_cli.errors import CheckpointError
from kattn_cli.models import Classifier, build_model
from kattn_cli.recipe import Recipe
from kattn_cli.recipe_data import Data
from kattn_cli.results import RECIPE, Run
from kattn_cli.training.checkpoint import has_weights, load_weights, weights_path

_WHERE_DATA_LIES = {"root", "download", "workers", "max_corrupt"}


@dataclass(frozen=True)
class OpenRun:
    """A run with its trained model in ``eval`` mode on a device; ``checkpoint`` names the weights used.

    ``step``: of the training, after which they were kept.
    """

    run: Run
    recipe: Recipe
    model: Classifier
    data: ImageData
    checkpoint: str
    step: int


def data_of(recipe: Recipe) -> ImageData:
    """The recipe's data set, loaded once a process."""
    return _load_data(recipe.data.model_dump_json())


@cache
def _load_data(section: str) -> ImageData:
    return load_data(Data.model_validate_json(section))


def build(recipe: Recipe, data: ImageData) -> Classifier:
    """The recipe's model, freshly initialised."""
    return build_model(
        recipe.model,
        recipe.attention,
        image_size=data.image_size,
        channels=data.channels,
        classes=data.classes,
        mean=data.mean,
        std=data.std,
    )


def identity(recipe: Recipe) -> dict[str, Any]:
    """The sections of a recipe that decide what a checkpoint's numbers mean."""
    return recipe.model_dump(include={"data", "model", "attention"}, exclude={"data": _WHERE_DATA_LIES})


def open_run(run: Run, device: torch.device, checkpoint: str = "best") -> OpenRun:
    """Load a run's ``best`` weights (chosen on validation), ``last``, or those of an epoch that were kept.

    A run stopped in its first epoch has no best; its last is used, and that is said.

    Raises:
        RecipeError, DataError, CheckpointError: if the recipe, its data or the weights cannot be used, in one line.
    """
    recipe = recipes.load(run.folder / RECIPE, weights=False)
    if not has_weights(run.folder, checkpoint) and has_weights(run.folder, "last"):
        console.print(f"{run.folder}: has no {checkpoint} checkpoint; using the last")
        checkpoint = "last"
    if not has_weights(run.folder, checkpoint):
        raise CheckpointError(f"{run.folder}: has no checkpoint (its training is {run.status})")
    data = data_of(recipe)
    model = build(recipe, data)
    path = weights_path(run.folder, checkpoint)
    used = load_weights(path, model, identity(recipe), on_damage=partial(console.print, markup=False))
    return OpenRun(run, recipe, model.to(device).eval(), data, checkpoint, int(used.get("step", 0)))
