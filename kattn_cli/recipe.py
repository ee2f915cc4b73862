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
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from kattn_cli.errors import RecipeError, did_you_mean
from kattn_cli.recipe_faults import faults_of, report
from kattn_cli.strict_yaml import Document, Fault, parse

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

Check = Callable[[Mapping[str, Any]], Iterable[Fault]]
"""Given the sections that are sound so far (by name), yields further faults."""

Trial = Callable[["Recipe"], Iterable[Fault]]
"""Given a recipe in which no fault was found, tries what it asks for and yields the faults that shows."""


class Data(BaseModel):
    """The data set, and the size its images are resized to (bilinear), if any."""

    model_config = STRICT
    name: str = "digits"
    image_size: Annotated[int, Field(ge=1, le=2048)] | None = None


class Vit(BaseModel):
    """A vision transformer of one's own size.

    ``feed_forward: ista`` is CRATE's, which has no use for ``mlp_ratio``; with ``causal`` no patch sees those after it.
    """

    model_config = STRICT
    name: Literal["vit"] = "vit"
    patch_size: Annotated[int, Field(ge=1, le=256)] = 2
    dim: Annotated[int, Field(ge=1, le=8192)] = 48
    depth: Annotated[int, Field(ge=1, le=128)] = 3
    heads: Annotated[int, Field(ge=1, le=128)] = 4
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 2.0
    pool: Literal["token", "avg"] = "avg"
    position: Literal["learned", "sincos"] = "sincos"
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    feed_forward: Literal["mlp", "ista"] = "mlp"
    causal: bool = False


class Tost(BaseModel):
    """The architecture of ToST, which is XCiT's without local patch interaction.

    ``layer_scale`` is where LayerScale starts; XCiT has 1 with 12 layers and 1e-5 with 24.
    """

    model_config = STRICT
    name: Literal["tost", "xcit"] = "tost"
    patch_size: Literal[2, 4, 8, 16, 32] = 2
    dim: Annotated[int, Field(ge=1, le=8192)] = 48
    depth: Annotated[int, Field(ge=1, le=128)] = 3
    heads: Annotated[int, Field(ge=1, le=128)] = 4
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 2.0
    class_depth: Annotated[int, Field(ge=1, le=16)] = 2
    layer_scale: Annotated[float, Field(gt=0, le=1)] = 1.0
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    feed_forward: Literal["mlp", "ista"] = "mlp"


class TimmModel(BaseModel):
    """One of timm's vision transformers, by its name there; its sizes come with the name.

    ``weights``: ``timm`` for timm's own pretrained weights, or a file in timm's naming, to begin from.
    """

    model_config = STRICT
    name: str
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    weights: str | None = None


Model = Vit | Tost | TimmModel


def _tost(name: str, dim: int, depth: int, heads: int, layer_scale: float = 1.0) -> dict[str, Any]:
    sizes = {"patch_size": 16, "dim": dim, "depth": depth, "heads": heads, "mlp_ratio": 4.0}
    return {"name": name, **sizes, "layer_scale": layer_scale}


def _crate(dim: int, depth: int, heads: int) -> dict[str, Any]:
    sizes = {"patch_size": 16, "dim": dim, "depth": depth, "heads": heads}
    return {"name": "vit", **sizes, "pool": "token", "position": "learned", "feed_forward": "ista"}


PRESETS: dict[str, dict[str, Any]] = {
    "tost_tiny": _tost("tost", 192, 12, 4),
    "tost_small": _tost("tost", 384, 12, 8),
    "tost_medium": _tost("tost", 512, 24, 8, layer_scale=1e-5),
    "xcit_small": _tost("xcit", 384, 12, 8),
    "xcit_medium": _tost("xcit", 512, 24, 8, layer_scale=1e-5),
    "crate_tiny": _crate(384, 12, 6),
    "crate_small": _crate(576, 12, 12),
    "crate_base": _crate(768, 12, 12),
    "crate_large": _crate(1024, 24, 16),
}
"""Models by the names of their papers (ToST paper, Table 5; CRATE paper, Table 1): short for a model with its sizes."""


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


class Train(BaseModel):
    """AdamW with a linear warm-up and a cosine to zero."""

    model_config = STRICT
    epochs: Annotated[int, Field(ge=1, le=100_000)] = 12
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    lr: Annotated[float, Field(gt=0, le=10)] = 3e-3
    weight_decay: Annotated[float, Field(ge=0, le=10)] = 0.05
    warmup_epochs: Annotated[int, Field(ge=0)] = 1
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1
    clip_grad: Annotated[float, Field(gt=0)] | None = None
    crop_padding: Annotated[int, Field(ge=0, le=64)] = 0


class Recipe(BaseModel):
    """One experiment, complete: with the same recipe and machine, the same numbers."""

    model_config = STRICT
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*$", max_length=120)]
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32)] = 0
    data: Data = Data()
    model: Model = Vit()
    attention: Annotated[Attention, BeforeValidator(_spelled_out)]
    train: Train = Train()

    def to_yaml(self) -> str:
        """The recipe with every default written out."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


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
    document = _read(path)
    sections: dict[str, Any] = {}
    if isinstance(document.data, dict):
        for override in overrides:
            _apply(override, document)
        _spell_out_preset(document.data)
        sections = _validate(document)
        document.faults += _contradictions(sections)
        if check:
            document.faults += check(sections)
        if trial and not document.faults:
            document.faults += trial(Recipe(**sections))
    if document.faults:
        raise RecipeError(report(str(path), document))
    return Recipe(**sections)


def _read(path: Path) -> Document:
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


def _apply(override: str, document: Document) -> None:
    """Set one ``key.path=value`` in the document's data."""
    dotted, equals, text = override.partition("=")
    path = tuple(int(part) if re.fullmatch(r"-?\d{1,9}", part) else part for part in dotted.split("."))
    place = "command line"
    if not equals or "" in path:
        document.faults.append(Fault(path, "expected key=value, for example train.epochs=5", place))
        return
    value = parse(text)
    if value.faults:
        document.faults += [Fault(path, fault.message, place) for fault in value.faults]
        return
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
    parent[path[-1]] = value.data
    document.places = {known: at for known, at in document.places.items() if known[: len(path)] != path}
    document.places[path] = place


def _spell_out_preset(data: dict[Any, Any]) -> None:
    """A preset's name becomes its model and sizes; what is given beside it wins."""
    given = data.get("model")
    if isinstance(given, dict) and isinstance(name := given.get("name"), str) and name in PRESETS:
        data["model"] = {**PRESETS[name], **{key: value for key, value in given.items() if key != "name"}}


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
        kind = _model_kind(data[name]) if name == "model" else info.annotation
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kind, info])  # type: ignore[arg-type]
            sound[name] = adapter.validate_python(data[name])
        except ValidationError as error:
            document.faults += faults_of(error, (name,), kind)
    return sound


def _model_kind(value: object) -> type[Vit] | type[Tost] | type[TimmModel]:
    name = value.get("name", "vit") if isinstance(value, dict) else "vit"
    if name in ("tost", "xcit"):
        return Tost
    return Vit if name == "vit" else TimmModel


def _contradictions(sections: Mapping[str, Any]) -> Iterable[Fault]:
    """Values that are sound alone and not together."""
    model, train, attention = (sections.get(name) for name in ("model", "train", "attention"))
    if isinstance(model, Vit | Tost):
        yield from _size_faults(model)
        if attention:
            yield from layer_faults(attention, model.depth)
    if train and train.warmup_epochs >= train.epochs > 1:
        yield Fault(("train", "warmup_epochs"), f"must be less than train.epochs = {train.epochs}")


def _size_faults(model: Vit | Tost) -> Iterable[Fault]:
    if model.dim % model.heads:
        yield Fault(("model", "heads"), f"must divide model.dim = {model.dim}, and {model.heads} does not")
    if isinstance(model, Vit):
        if model.position == "sincos" and model.dim % 4:
            yield Fault(("model", "dim"), f"must be a multiple of 4 for position: sincos, and {model.dim} is not")
        if model.causal and model.pool == "token":
            yield Fault(("model", "pool"), "must be avg for causal: true, since the class token comes first")
    elif model.dim % (narrowest := model.patch_size // 2):
        by = f"for patch_size {model.patch_size}, whose first convolution has dim / {narrowest} channels"
        yield Fault(("model", "dim"), f"must be a multiple of {narrowest} {by}, and {model.dim} is not")
