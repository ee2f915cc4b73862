"""Recipes: what is trained, on what, with which attention, and how. This room never imports torch.

A recipe is one YAML file. :func:`load_recipe` reads it, applies the command line's overrides, and either
returns a frozen :class:`Recipe` or raises one :class:`~kattn_cli.errors.RecipeError` that names every fault.
What only a room with torch can know (the options of a mechanism, the depth of a timm model) comes in as
``check``, so that those faults stand in the same message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from kattn_cli.errors import RecipeError, did_you_mean
from kattn_cli.recipe.data import ImageSection, SegmentationSection, SequenceSection, TrajectorySection
from kattn_cli.recipe.faults import faults_of, report
from kattn_cli.recipe.grid import COMMAND_LINE, SWEEP
from kattn_cli.recipe.model import (
    STRICT,
    DecisionTransformer,
    Decoder,
    Encoder,
    Model,
    Segmenter,
    TimmModel,
    Vit,
    model_kind,
    size_faults,
    spell_out_preset,
    timm_faults,
)
from kattn_cli.recipe.strict_yaml import Document, Fault, KeyPath, parse
from kattn_cli.recipe.train import Train, train_faults

SECTIONS: dict[type[BaseModel], type[BaseModel]] = {
    Segmenter: SegmentationSection,
    Encoder: SequenceSection,
    Decoder: SequenceSection,
    DecisionTransformer: TrajectorySection,
}
"""What a model reads; all others read images."""

Check = Callable[[Mapping[str, Any]], Iterable[Fault]]
"""Given the sections that are sound so far (by name), yields further faults."""

Trial = Callable[["Recipe"], Iterable[Fault]]
"""Given a recipe in which no fault was found, tries what it asks for and yields the faults that shows."""


def _spelled_out(value: object) -> object:
    """``symmetric`` is short for ``{name: symmetric}``."""
    return {"name": value} if isinstance(value, str) else value


class Mechanism(BaseModel):
    """An attention mechanism by name, with its own options (checked against its constructor)."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    name: str

    @property
    def options(self) -> dict[str, Any]:
        """The mechanism's own options as the recipe gives them."""
        return dict(self.model_extra or {})


LayerKey = int | str
LAYER_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")


class Attention(Mechanism):
    """The mechanism of every layer, and the exceptions.

    The keys of ``layers`` are indices (``0`` is the first layer, ``-1`` the last) or slices as in Python
    (``"1:"``: all but the first).
    """

    layers: dict[LayerKey, Annotated[Mechanism, BeforeValidator(_spelled_out)]] = Field(default_factory=dict)

    @property
    def characteristic(self) -> str:
        """The mechanism that sets this model apart: the first named that is not plain softmax or symmetric."""
        names = [self.name, *(one.name for one in self.layers.values())]
        return next((name for name in names if name not in ("softmax", "symmetric")), self.name)

    def per_layer(self, depth: int) -> list[Mechanism]:
        """The mechanism of each of ``depth`` layers."""
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
    data: ImageSection | SegmentationSection | SequenceSection | TrajectorySection = ImageSection()
    model: Model = Vit()
    attention: Annotated[Attention, BeforeValidator(_spelled_out)]
    train: Train = Train()

    def to_yaml(self) -> str:
        """The recipe with every default written out."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


def per_seed(recipe: Recipe, seeds: Sequence[int]) -> list[Recipe]:
    """The recipe once for each of ``seeds``, or else of its own."""
    chosen = seeds or recipe.seeds or [recipe.seed]
    return [recipe.model_copy(update={"seed": seed, "seeds": None}) for seed in chosen]


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The sections of a recipe by dotted keys: ``{"train.epochs": 5}``."""
    keys: dict[str, Any] = {}
    for key, value in tree.items():
        keys |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return keys


def layers_of(key: LayerKey, depth: int) -> range:
    """The layers that ``key`` names in a model of ``depth`` layers; empty where it names none."""
    if isinstance(key, int):
        return range(depth)[key : key + 1 or None] if -depth <= key < depth else range(0)
    match = LAYER_SLICE.fullmatch(key)
    if not match:
        return range(0)
    start, stop = (int(bound) if bound else None for bound in match.groups())
    return range(depth)[start:stop]


def layer_faults(attention: Attention, depth: int) -> Iterable[Fault]:
    """Layers that a model of ``depth`` layers does not have, and layers named twice."""
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


def load_recipe(
    path: Path, overrides: Sequence[str] = (), check: Check | None = None, trial: Trial | None = None
) -> Recipe:
    """Read the recipe at ``path`` with ``overrides`` (``train.epochs=5``) applied.

    Raises:
        RecipeError: naming every fault found, each with its line, its key and what was expected.
    """
    document = read_recipe(path)
    if isinstance(document.data, dict) and SWEEP in document.data:
        where = document.places[(SWEEP,)]
        raise RecipeError(
            f"{path}: stands for several recipes ({SWEEP}: on {where}); train them with: kattn sweep {path}"
        )
    recipe = filled(document, overrides, check, trial)
    if recipe is None:
        raise RecipeError(report(str(path), document))
    return recipe


def filled(
    document: Document, overrides: Sequence[str] = (), check: Check | None = None, trial: Trial | None = None
) -> Recipe | None:
    """The recipe that a document means; None where there are faults, which the document then holds."""
    sections: dict[str, Any] = {}
    if isinstance(document.data, dict):
        for override in overrides:
            apply_override(override, document)
        spell_out_preset(document.data)
        sections = _validate(document)
        document.faults += _contradictions(sections)
        if check:
            document.faults += check(sections)
        if trial and not document.faults:
            document.faults += trial(Recipe(**sections))
    return None if document.faults else Recipe(**sections)


def read_recipe(path: Path) -> Document:
    """A recipe's file as it stands, not yet checked but for being YAML.

    Raises:
        RecipeError: if it cannot be read, or is no mapping of keys.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise RecipeError(f"{path}: there is no such file") from None
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: is not a text file in UTF-8 (byte {error.start})") from None
    document = parse(text)
    if document.faults:
        return document
    if document.data is None:
        raise RecipeError(f'{path}: is empty; a recipe needs at least "name" and "attention"')
    if not isinstance(document.data, dict):
        kind = "a list" if isinstance(document.data, list) else "a single value"
        raise RecipeError(f"{path}: expected a mapping of keys (name, attention, …), not {kind}")
    return document


def apply_override(override: str, document: Document) -> None:
    """Set one ``key.path=value`` in the document's data; what is wrong with it becomes a fault of the document."""
    dotted, equals, text = override.partition("=")
    path = key_path(dotted)
    if not equals or "" in path:
        document.faults.append(Fault(path, "expected key=value, for example train.epochs=5", COMMAND_LINE))
        return
    value = parse(text)
    if value.faults:
        document.faults += [Fault(path, fault.message, COMMAND_LINE) for fault in value.faults]
        return
    set_key(document, path, value.data, COMMAND_LINE)


def key_path(dotted: str) -> KeyPath:
    """``attention.layers.0`` as the path of a key."""
    return tuple(int(part) if re.fullmatch(r"-?\d{1,9}", part) else part for part in dotted.split("."))


def set_key(document: Document, path: KeyPath, value: Any, place: str) -> None:
    """Give the key at ``path`` another value, said at ``place``; sections on the way that are not there are made."""
    parent = document.data
    for depth, part in enumerate(path[:-1], 1):
        if isinstance(parent.get(part), str) and path[0] == "attention":
            parent[part] = _spelled_out(parent[part])
        if part not in parent:
            parent[part] = {}
            document.places[path[:depth]] = place
        parent = parent[part]
        if not isinstance(parent, dict):
            document.faults.append(Fault(path[:depth], "holds a value, not keys of its own", place))
            return
    parent[path[-1]] = value
    document.places = {known: at for known, at in document.places.items() if known[: len(path)] != path}
    document.places[path] = place


def _validate(document: Document) -> dict[str, Any]:
    """The sections that are sound; the faults of the others join the document's."""
    data, sound = document.data, {}
    for key in data:
        if key not in Recipe.model_fields:
            hint = did_you_mean(str(key), Recipe.model_fields)
            document.faults.append(Fault((key,), f"unknown key{hint}"))
    for name, info in Recipe.model_fields.items():
        if name not in data:
            if info.is_required():
                document.faults.append(Fault((name,), "is missing"))
            else:
                sound[name] = info.default
            continue
        kind = _kind_of(name, data) or info.annotation
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kind, info])  # type: ignore[arg-type]
            sound[name] = adapter.validate_python(data[name])
        except ValidationError as error:
            document.faults += faults_of(error, (name,), kind)
            if kind is TimmModel:
                document.faults += timm_faults(data[name])
    return sound


def _kind_of(section: str, data: Mapping[str, Any]) -> type[BaseModel] | None:
    """Of a section that has several kinds, the one that the document means."""
    if section == "model":
        return model_kind(data[section])
    if section == "data":
        return SECTIONS.get(model_kind(data.get("model")), ImageSection)
    return None


def _contradictions(sections: Mapping[str, Any]) -> Iterable[Fault]:
    """Values that are sound alone and not together."""
    model, train, attention = (sections.get(name) for name in ("model", "train", "attention"))
    if model and not isinstance(model, TimmModel):
        yield from size_faults(model)
        if attention:
            yield from layer_faults(attention, model.depth)
    if train:
        yield from train_faults(train)
    seeds = sections.get("seeds")
    if seeds and len(set(seeds)) < len(seeds):
        yield Fault(("seeds",), "names a seed twice")
