"""The sections of a recipe: what is trained, on what, with which attention, and how. Never imports torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny

from kattn_cli.recipe.data import DataSection, ImageSection
from kattn_cli.recipe.model import STRICT, Model, Vit
from kattn_cli.recipe.strict_yaml import Fault
from kattn_cli.recipe.train import Train


def spelled_out(value: object) -> object:
    """Return ``{name: symmetric}``, which ``symmetric`` is short for; anything else as it is."""
    return {"name": value} if isinstance(value, str) else value


class Mechanism(BaseModel):
    """An attention mechanism by name, with its own options (checked against its constructor)."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    name: str

    @property
    def options(self) -> dict[str, Any]:
        """Return the mechanism's own options as the recipe gives them."""
        return dict(self.model_extra or {})


LayerKey = int | str
LAYER_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")


class Attention(Mechanism):
    """The mechanism of every layer, and the exceptions.

    The keys of ``layers`` are indices (``0`` is the first layer, ``-1`` the last) or slices as in Python
    (``"1:"``: all but the first).
    """

    layers: dict[LayerKey, Annotated[Mechanism, BeforeValidator(spelled_out)]] = Field(default_factory=dict)

    @property
    def characteristic(self) -> str:
        """Return the mechanism that sets this model apart: the first that is not plain softmax or symmetric."""
        names = [self.name, *(one.name for one in self.layers.values())]
        return next((name for name in names if name not in ("softmax", "symmetric")), self.name)

    def per_layer(self, depth: int) -> list[Mechanism]:
        """Return the mechanism of each of ``depth`` layers."""
        chosen: list[Mechanism] = [Mechanism(name=self.name, **self.options)] * depth
        for key, mechanism in self.layers.items():
            for layer in layers_of(key, depth):
                chosen[layer] = mechanism
        return chosen


Seed = Annotated[int, Field(strict=True, ge=0, lt=2**32)]


class Recipe(BaseModel):
    """One experiment, complete: with the same recipe and machine, the same numbers.

    ``seeds`` trains one run for each; ``init_from`` is a run's folder or a file of weights to begin from.
    """

    model_config = STRICT
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*$", max_length=120)]
    seed: Seed = 0
    seeds: Annotated[list[Seed], Field(min_length=1)] | None = None
    init_from: str | None = None
    data: SerializeAsAny[DataSection] = ImageSection()
    model: SerializeAsAny[Model] = Vit()
    attention: Annotated[Attention, BeforeValidator(spelled_out)]
    train: Train = Train()

    def to_yaml(self) -> str:
        """Return the recipe as YAML, with every default written out."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


def per_seed(recipe: Recipe, seeds: Sequence[int]) -> list[Recipe]:
    """Return the recipe once for each of ``seeds``, or else of its own."""
    chosen = seeds or recipe.seeds or [recipe.seed]
    return [recipe.model_copy(update={"seed": seed, "seeds": None}) for seed in chosen]


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the sections of a recipe by dotted keys: ``{"train.epochs": 5}``."""
    keys: dict[str, Any] = {}
    for key, value in tree.items():
        keys |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return keys


def layers_of(key: LayerKey, depth: int) -> range:
    """Return the layers that ``key`` names in a model of ``depth`` layers; empty where it names none."""
    if isinstance(key, int):
        return range(depth)[key : key + 1 or None] if -depth <= key < depth else range(0)
    match = LAYER_SLICE.fullmatch(key)
    if not match:
        return range(0)
    start, stop = (int(bound) if bound else None for bound in match.groups())
    return range(depth)[start:stop]


def layer_faults(attention: Attention, depth: int) -> Iterable[Fault]:
    """Yield layers that a model of ``depth`` layers does not have, and layers named twice."""
    owner: dict[int, LayerKey] = {}
    for key in attention.layers:
        path = ("attention", "layers", key)
        layers = layers_of(key, depth)
        if isinstance(key, str) and not LAYER_SLICE.fullmatch(key):
            yield Fault(path, 'expected a layer index such as 0 or -1, or a slice such as "1:"')
        elif not layers:
            yield Fault(path, f"the model has {depth} layers: 0 … {depth - 1}, or -{depth} … -1")
        for layer in layers:
            if layer in owner:
                yield Fault(path, f"names layer {layer}, which {owner[layer]} names already")
                break
            owner[layer] = key
