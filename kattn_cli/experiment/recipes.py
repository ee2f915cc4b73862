"""Recipes checked against what is here: data sets, models, weights, mechanisms and their options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import timm
import torch

from kattn_cli.attention import ATTENTIONS, attention_class
from kattn_cli.attention.options import all_options, check_options
from kattn_cli.attention.user_file import names_a_file, told
from kattn_cli.data import DATASETS
from kattn_cli.data.dataset import Corpus
from kattn_cli.errors import RecipeError, did_you_mean
from kattn_cli.experiment.building import layers_of_length
from kattn_cli.experiment.data_section import data_faults, image_size, resolved, sequence_facts, sequence_length
from kattn_cli.models import Layers
from kattn_cli.models.initial import source_fault
from kattn_cli.models.pretrained import TIMM
from kattn_cli.models.vit import build_timm, timm_names
from kattn_cli.models.weights_file import FILE_TYPES
from kattn_cli.recipe.load import load_recipe
from kattn_cli.recipe.model import (
    KINDS,
    PRESETS,
    DecisionTransformer,
    Decoder,
    Encoder,
    Model,
    Segmenter,
    TimmModel,
    Tost,
    Vit,
)
from kattn_cli.recipe.schema import Attention, Mechanism, Recipe, layer_faults
from kattn_cli.recipe.strict_yaml import Fault, KeyPath
from kattn_cli.recipe.sweep import Point, load_points
from kattn_cli.recipe.train import Train, augmentation_faults, mask_faults
from kattn_cli.training.augment.randaugment import parse_policy


def load(path: Path, overrides: Sequence[str] = (), *, weights: bool = True, data: bool = True) -> Recipe:
    """The recipe at ``path``, with every fault found and every default written out.

    Args:
        weights: whether the weights to begin from must be there, as they must for a training to begin.
        data: whether the files of the data set must be there.

    Raises:
        RecipeError: naming every fault.
    """
    check = partial(component_faults, weights=weights, there=data)
    return _complete(load_recipe(path, overrides, check=check, trial=_refusals))


def load_sweep(
    path: Path, overrides: Sequence[str] = (), over: Sequence[str] = (), seeds: Sequence[int] = (), *, data: bool = True
) -> list[Point]:
    """The points of the sweep at ``path``, each as :func:`load` gives a recipe.

    Args:
        overrides, over, seeds: as :func:`~kattn_cli.recipe.sweep.load_points` takes them.
        data: whether the files of the data set must be there.

    Raises:
        RecipeError: naming every fault of every point.
    """
    check = partial(component_faults, there=data)
    return load_points(path, overrides, over, seeds, check=check, trial=_refusals, complete=_complete)


def _complete(recipe: Recipe) -> Recipe:
    spelled_out = {key: _spelled_out(one) for key, one in recipe.attention.layers.items()}
    default = _spelled_out(recipe.attention)
    attention = Attention(name=default.name, layers=spelled_out, **default.options)
    sections = {
        "attention": attention,
        "model": _located(recipe.model),
        "data": resolved(recipe.data),
        "init_from": recipe.init_from and str(_path(recipe.init_from)),
    }
    return recipe.model_copy(update=sections)


def _spelled_out(mechanism: Mechanism) -> Mechanism:
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


def component_faults(sections: Mapping[str, Any], weights: bool = True, there: bool = True) -> Iterable[Fault]:
    """What the data, the model and the mechanisms themselves have to say against a recipe."""
    data, model, attention, train = (sections.get(name) for name in ("data", "model", "attention", "train"))
    if train:
        yield from _training_faults(train)
    if attention:
        for path, mechanism in _mechanisms(attention):
            yield from check_options(mechanism.name, mechanism.options, path)
    if weights and sections.get("init_from"):
        yield from _initial_faults(sections["init_from"], model)
    size = None
    if data:
        yield from data_faults(data, there)
        size = image_size(data)
    if isinstance(model, TimmModel):
        yield from _timm_faults(model.name, attention, size)
        if weights and model.weights:
            yield from _weights_faults(model.name, model.weights)
    elif isinstance(model, Vit | Tost | Segmenter) and size and size % model.patch_size:
        yield Fault(("model", "patch_size"), f"must divide the image size, {size}, and {model.patch_size} does not")
    if train and isinstance(model, Encoder | Decoder | DecisionTransformer):
        yield from augmentation_faults(train)
    if train and isinstance(model, Segmenter):
        yield from mask_faults(train)
    if isinstance(model, Encoder) and data and issubclass(DATASETS.get(data.name, object), Corpus):
        yield Fault(("model", "name"), f"encoder classifies, and {data.name} is running text; take decoder")
    if isinstance(model, Decoder) and data and (facts := sequence_facts(data)) and (facts.channels or facts.pairs):
        kind = "pairs of sequences" if facts.pairs else "series of numbers"
        yield Fault(
            ("model", "name"), f"decoder reads tokens one after the other, and {data.name} holds {kind}; take encoder"
        )
    if attention and (asked_by := _asks_for_causality(model)):
        yield from _causal_faults(attention, asked_by)


def _asks_for_causality(model: Model | None) -> str:
    """What of a model lets no token see those after it; nothing if they all see each other."""
    if isinstance(model, Vit):
        return "model.causal" if model.causal else ""
    return (
        "a decoder" if isinstance(model, Decoder) else "decision_transformer" * isinstance(model, DecisionTransformer)
    )


def _mechanisms(attention: Attention) -> Iterator[tuple[KeyPath, Mechanism]]:
    """Each mechanism that a recipe names, with its place there."""
    yield ("attention",), Mechanism(name=attention.name, **attention.options)
    for key, exception in attention.layers.items():
        yield ("attention", "layers", key), exception


def _causal_faults(attention: Attention, asked_by: str) -> Iterable[Fault]:
    """Mechanisms without a causal form; names that do not exist are told elsewhere."""
    for path, mechanism in _mechanisms(attention):
        try:
            cls = attention_class(mechanism.name)
        except RecipeError:
            continue
        if not getattr(cls, "supports_causal", False):
            causal = ", ".join(name for name, one in ATTENTIONS.items() if getattr(one, "supports_causal", False))
            where = path if len(path) > 1 else (*path, "name")
            yield Fault(where, f"{mechanism.name} has no causal form, as {asked_by} asks; these have: {causal}")


def _refusals(recipe: Recipe) -> Iterable[Fault]:
    """What a mechanism says only when it is built, such as of options that do not go together."""
    layers = _layers(recipe)
    if layers is None:
        return
    for path, mechanism in _mechanisms(recipe.attention):
        try:
            module = layers.build(mechanism)
        except RecipeError as error:
            yield Fault(path, str(error).removeprefix(f"attention {mechanism.name}: "))
            continue
        if names_a_file(mechanism.name):
            yield from _forward_faults(path, module, (1, layers.seq_len, layers.dim))


def _layers(recipe: Recipe) -> Layers | None:
    """What the mechanisms are built for, if the size of the data is known."""
    length = image_size(recipe.data) or sequence_length(recipe.data)
    return layers_of_length(recipe, length) if length else None


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
        hint = did_you_mean(name, [*KINDS, *PRESETS, *timm_names()])
        expected = f"{', '.join(KINDS)}, one of their presets or one of timm's vision transformers"
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


def _training_faults(train: Train) -> Iterable[Fault]:
    if train.randaugment:
        try:
            parse_policy(train.randaugment)
        except ValueError as error:
            yield Fault(("train", "randaugment"), str(error))
    if train.tensorboard and not find_spec("tensorboard"):
        yield Fault(("train", "tensorboard"), "needs a package that is not installed: pip install 'kattn[tensorboard]'")


def _initial_faults(init_from: str, model: Model | None) -> Iterable[Fault]:
    if isinstance(model, TimmModel) and model.weights:
        yield Fault(("init_from",), "and model.weights are both to begin from; give one of the two")
    elif fault := source_fault(str(_path(init_from))):
        yield Fault(("init_from",), fault)


def _weights_faults(name: str, weights: str) -> Iterable[Fault]:
    path = ("model", "weights")
    if weights == TIMM:
        if timm.is_model(name) and not timm.is_model_pretrained(name):
            yield Fault(path, f"timm has no weights for {name}")
    elif Path(weights).suffix not in FILE_TYPES:
        yield Fault(path, f'expected timm, or a file that ends in {", ".join(FILE_TYPES)}, not "{weights}"')
    elif not _path(weights).is_file():
        yield Fault(path, f"there is no file {_path(weights)}")
