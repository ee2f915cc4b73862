"""The operations of a recipe's model on one sample of its data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kattn_cli.costs.flops import ModelFlops, model_flops_of, model_flops_without_running
from kattn_cli.errors import KattnError
from kattn_cli.experiment.build import build, outline
from kattn_cli.models import AttentionModel
from kattn_cli.recipe.schema import Recipe


def model_flops(recipe: Recipe, folder: Path) -> ModelFlops:
    """Return the operations of a forward pass of a run's model.

    Args:
        folder: the run's.

    Raises:
        KattnError: if the model cannot be built here.
    """
    return model_flops_of(*_parts(recipe, folder))


def flops_without_running(recipe: Recipe, folder: Path) -> int | None:
    """Return the operations as :func:`model_flops` counts them; None if they cannot be told with nothing computed.

    Random numbers come afterwards as if it had not been asked.
    """
    try:
        parts = _parts(recipe, folder)
    except KattnError:
        return None
    with torch.random.fork_rng(devices=[]):
        counted = model_flops_without_running(*parts)
    return counted.flops if counted else None


def _parts(recipe: Recipe, folder: Path) -> tuple[Callable[[], AttentionModel], Callable[[], Any]]:
    data = outline(recipe, folder)
    return lambda: build(recipe, data), lambda: data.sample(1, "meta")
