"""Recipes checked against what is here: data sets, models, mechanisms and their options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import timm
import torch

from kattn_cli.attention.options import all_options, check_options
from kattn_cli.attention.user_file import names_a_file
from kattn_cli.data import DATASETS
from kattn_cli.errors import did_you_mean
from kattn_cli.models.vit import build_timm, timm_names
from kattn_cli.recipe import Attention, Mechanism, Recipe, TimmModel, Vit, layer_faults, load_recipe
from kattn_cli.strict_yaml import Fault


def load(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe at ``path``, with every fault found and every default written out.

    Raises:
        RecipeError: naming every fault.
    """
    recipe = load_recipe(path, overrides, check=component_faults)
    spelled_out = {key: _complete(one) for key, one in recipe.attention.layers.items()}
    default = _complete(recipe.attention)
    attention = Attention(name=default.name, layers=spelled_out, **default.options)
    return recipe.model_copy(update={"attention": attention})


def _complete(mechanism: Mechanism) -> Mechanism:
    name = mechanism.name
    if names_a_file(name):
        file, _, attribute = name.rpartition(":")
        name = f"{Path(file).expanduser().resolve()}:{attribute}"
    return Mechanism(name=name, **all_options(mechanism.name, mechanism.options))


def component_faults(sections: Mapping[str, Any]) -> Iterable[Fault]:
    """What the data, the model and the mechanisms themselves have to say against a recipe."""
    data, model, attention = (sections.get(name) for name in ("data", "model", "attention"))
    if attention:
        yield from check_options(attention.name, attention.options, ("attention",))
        for key, exception in attention.layers.items():
            yield from check_options(exception.name, exception.options, ("attention", "layers", key))
    size = None
    if data and data.name not in DATASETS:
        hint = did_you_mean(data.name, DATASETS)
        yield Fault(("data", "name"), f'expected one of {", ".join(DATASETS)}, not "{data.name}"{hint}')
    elif data:
        size = data.image_size or DATASETS[data.name].image_size
    if isinstance(model, TimmModel):
        yield from _timm_faults(model.name, attention, size)
    elif isinstance(model, Vit) and size and size % model.patch_size:
        yield Fault(("model", "patch_size"), f"must divide the image size, {size}, and {model.patch_size} does not")


def _timm_faults(name: str, attention: Attention | None, size: int | None) -> Iterable[Fault]:
    path = ("model", "name")
    if not timm.is_model(name):
        hint = did_you_mean(name, ["vit", *timm_names()])
        yield Fault(path, f'expected vit or one of timm\'s vision transformers, not "{name}"{hint}')
        return
    try:
        with torch.device("meta"):
            backbone = build_timm(name)
    except Exception as error:
        yield Fault(path, str(error))
        return
    if attention:
        yield from layer_faults(attention, len(backbone.blocks))
    patch = backbone.patch_embed.patch_size[0]
    if size and size % patch:
        yield Fault(
            ("data", "image_size"),
            f"must be a multiple of {patch}, the patch size of {name} (224, say), and {size} is not",
        )
