"""Recipes checked against what is here: data sets, models, weights, mechanisms and their options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import timm
import torch

from kattn_cli.attention import ATTENTIONS, attention_class
from kattn_cli.attention.options import all_options, check_options
from kattn_cli.attention.user_file import names_a_file, told
from kattn_cli.data import DATASETS
from kattn_cli.errors import RecipeError, did_you_mean
from kattn_cli.models import attention_layers
from kattn_cli.models.pretrained import FILE_TYPES, TIMM
from kattn_cli.models.vit import build_timm, timm_names
from kattn_cli.recipe import Attention, Data, Mechanism, Recipe, layer_faults, load_recipe
from kattn_cli.recipe_model import PRESETS, Model, TimmModel, Vit
from kattn_cli.strict_yaml import Fault, KeyPath


def load(path: Path, overrides: Sequence[str] = (), *, weights: bool = True) -> Recipe:
    """The recipe at ``path``, with every fault found and every default written out.

    Args:
        weights: whether the file of pretrained weights must be there, as it must for a training to begin.

    Raises:
        RecipeError: naming every fault.
    """
    recipe = load_recipe(path, overrides, check=partial(component_faults, weights=weights), trial=_refusals)
    spelled_out = {key: _complete(one) for key, one in recipe.attention.layers.items()}
    default = _complete(recipe.attention)
    attention = Attention(name=default.name, layers=spelled_out, **default.options)
    return recipe.model_copy(update={"attention": attention, "model": _located(recipe.model)})


def _complete(mechanism: Mechanism) -> Mechanism:
    name = mechanism.name
    if names_a_file(name):
        file, _, attribute = name.rpartition(":")
        name = f"{Path(file).expanduser().resolve()}:{attribute}"
    return Mechanism(name=name, **all_options(mechanism.name, mechanism.options))


def _located(model: Model) -> Model:
    """A file of weights by its absolute path."""
    if not isinstance(model, TimmModel) or model.weights in (None, TIMM):
        return model
    return model.model_copy(update={"weights": str(_path(model.weights))})


def _path(weights: str) -> Path:
    return Path(weights).expanduser().resolve()


def component_faults(sections: Mapping[str, Any], weights: bool = True) -> Iterable[Fault]:
    """What the data, the model and the mechanisms themselves have to say against a recipe."""
    data, model, attention = (sections.get(name) for name in ("data", "model", "attention"))
    if attention:
        for path, mechanism in _mechanisms(attention):
            yield from check_options(mechanism.name, mechanism.options, path)
    size = None
    if data and data.name not in DATASETS:
        hint = did_you_mean(data.name, DATASETS)
        yield Fault(("data", "name"), f'expected one of {", ".join(DATASETS)}, not "{data.name}"{hint}')
    elif data:
        size = _image_size(data)
    if isinstance(model, TimmModel):
        yield from _timm_faults(model.name, attention, size)
        if weights and model.weights:
            yield from _weights_faults(model.name, model.weights)
    elif model and size and size % model.patch_size:
        yield Fault(("model", "patch_size"), f"must divide the image size, {size}, and {model.patch_size} does not")
    if isinstance(model, Vit) and model.causal and attention:
        yield from _causal_faults(attention)


def _mechanisms(attention: Attention) -> Iterator[tuple[KeyPath, Mechanism]]:
    """Each mechanism that a recipe names, with its place there."""
    yield ("attention",), Mechanism(name=attention.name, **attention.options)
    for key, exception in attention.layers.items():
        yield ("attention", "layers", key), exception


def _image_size(data: Data) -> int:
    return data.image_size or DATASETS[data.name].image_size


def _causal_faults(attention: Attention) -> Iterable[Fault]:
    """Mechanisms without a causal form; names that do not exist are told elsewhere."""
    for path, mechanism in _mechanisms(attention):
        try:
            cls = attention_class(mechanism.name)
        except RecipeError:
            continue
        if not getattr(cls, "supports_causal", False):
            causal = ", ".join(name for name, one in ATTENTIONS.items() if getattr(one, "supports_causal", False))
            where = path if len(path) > 1 else (*path, "name")
            yield Fault(where, f"{mechanism.name} has no causal form, as model.causal asks; these have: {causal}")


def _refusals(recipe: Recipe) -> Iterable[Fault]:
    """What a mechanism says only when it is built, such as of options that do not go together."""
    layers = attention_layers(recipe.model, _image_size(recipe.data))
    for path, mechanism in _mechanisms(recipe.attention):
        try:
            module = layers.build(mechanism)
        except RecipeError as error:
            yield Fault(path, str(error).removeprefix(f"attention {mechanism.name}: "))
            continue
        if names_a_file(mechanism.name):
            yield from _forward_faults(path, module, (1, layers.seq_len, layers.dim))


@torch.no_grad()
def _forward_faults(path: KeyPath, module: torch.nn.Module, shape: tuple[int, int, int]) -> Iterable[Fault]:
    """What a mechanism of the user's own does wrong with one sample."""
    try:
        out = module(torch.zeros(shape))
    except Exception as error:
        yield Fault(path, f"forward fails: {told(error)}")
        return
    if getattr(out, "shape", None) != shape:
        found = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        yield Fault(path, f"forward must return x's shape, {shape}, not {found}")


def _timm_faults(name: str, attention: Attention | None, size: int | None) -> Iterable[Fault]:
    path = ("model", "name")
    if not timm.is_model(name):
        own = ["vit", "tost", "xcit"]
        hint = did_you_mean(name, [*own, *PRESETS, *timm_names()])
        expected = f"{', '.join(own)}, one of their presets or one of timm's vision transformers"
        yield Fault(path, f'expected {expected}, not "{name}"{hint}')
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


def _weights_faults(name: str, weights: str) -> Iterable[Fault]:
    path = ("model", "weights")
    if weights == TIMM:
        if timm.is_model(name) and not timm.is_model_pretrained(name):
            yield Fault(path, f"timm has no weights for {name}")
    elif Path(weights).suffix not in FILE_TYPES:
        yield Fault(path, f'expected timm, or a file that ends in {", ".join(FILE_TYPES)}, not "{weights}"')
    elif not _path(weights).is_file():
        yield Fault(path, f"there is no file {_path(weights)}")
