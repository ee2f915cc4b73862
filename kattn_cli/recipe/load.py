"""Return the recipe that a file means, or name every fault of it. Never imports torch.

:func:`load_recipe` reads the file, applies the command line's overrides, and either returns a frozen
:class:`~kattn_cli.recipe.schema.Recipe` or raises one :class:`~kattn_cli.errors.RecipeError` that names every fault.
What only a room with torch can know (the options of a mechanism, the depth of a timm model) comes in as ``check``, so
that those faults stand in the same message.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from kattn_cli.errors import RecipeError, did_you_mean
from kattn_cli.recipe.faults import RecipeFaults, faults_of
from kattn_cli.recipe.files import Source, read_file
from kattn_cli.recipe.model import (
    Kinds,
    TimmModel,
    model_kind,
    size_faults,
    spell_out_preset,
    timm_faults,
)
from kattn_cli.recipe.schema import Recipe, layer_faults, spelled_out
from kattn_cli.recipe.strict_yaml import COMMAND_LINE, Document, Fault, KeyPath, parse
from kattn_cli.recipe.train import train_faults
from kattn_cli.recipe.variants import VARIANTS, Notes, chosen, no_such_variant, take_notes, variant_names

SWEEP = "sweep"
"""The key of a file that stands for several recipes."""

Check = Callable[[Mapping[str, Any]], Iterable[Fault]]
"""Given the sections that are sound so far (by name), yields further faults."""

Trial = Callable[[Recipe], Iterable[Fault]]
"""Given a recipe in which no fault was found, tries what it asks for and yields the faults that shows."""


def load_recipe(
    source: Path | Source,
    kinds: Kinds,
    overrides: Sequence[str] = (),
    check: Check | None = None,
    trial: Trial | None = None,
) -> Recipe:
    """Return the recipe of a file, or of one of its variants, with ``overrides`` (``train.epochs=5``) applied.

    Args:
        kinds: the data section that each model section reads.

    Raises:
        RecipeError: naming every fault found, each with its line, its key and what was expected.
    """
    document, _ = read_recipe(source)
    if isinstance(document.data, dict) and SWEEP in document.data:
        where = document.places[(SWEEP,)]
        raise RecipeError(
            f"{source}: stands for several recipes ({SWEEP}: on {where}); train them with: kattn sweep "
            f"{shlex.quote(str(source))}"
        )
    recipe = filled(document, kinds, overrides, check, trial)
    if recipe is None:
        raise RecipeFaults.of(str(source), document)
    return recipe


def read_notes(source: Source) -> Notes:
    """Return what a recipe says of itself; a file of a single recipe may say it in its first comment."""
    _, notes = read_recipe(source)
    if notes.about or source.variant:
        return notes
    first = source.path.read_text(encoding="utf-8").partition("\n")[0]
    return replace(notes, about=first.removeprefix("#").strip() if first.startswith("#") else "")


def filled(
    document: Document,
    kinds: Kinds,
    overrides: Sequence[str] = (),
    check: Check | None = None,
    trial: Trial | None = None,
) -> Recipe | None:
    """Return the recipe that a document means, or None where there are faults, which the document then holds."""
    sections: dict[str, Any] = {}
    if isinstance(document.data, dict):
        for override in overrides:
            apply_override(override, document)
        spell_out_preset(document.data)
        sections = _validate(document, kinds)
        document.faults += _contradictions(sections)
        if check:
            document.faults += check(sections)
        if trial and not document.faults:
            document.faults += trial(Recipe(**sections))
    return None if document.faults else Recipe(**sections)


def read_recipe(source: Path | Source) -> tuple[Document, Notes]:
    """Return a recipe as its file has it, not yet checked but for being YAML, and what it says of itself.

    Raises:
        RecipeError: if it cannot be read, is no mapping of keys, has no such variant, or has several and none is named.
    """
    path, variant = (source.path, source.variant) if isinstance(source, Source) else (source, None)
    document = read_file(path)
    if document.faults:
        return document, Notes()
    if document.data is None:
        raise RecipeError(f'{path}: is empty; a recipe needs at least "name" and "attention"')
    if not isinstance(document.data, dict):
        kind = "a list" if isinstance(document.data, list) else "a single value"
        raise RecipeError(f"{path}: expected a mapping of keys (name, attention, …), not {kind}")
    names = variant_names(document)
    if variant is not None and variant not in names:
        raise RecipeError(no_such_variant(str(path), document, variant))
    if variant is None and names:
        raise RecipeError(f"{path}: has several recipes; name one: {', '.join(f'{path}/{name}' for name in names)}")
    if VARIANTS in document.data:
        document = chosen(document, variant or "")
        if document.faults:
            raise RecipeFaults.of(str(path), document)
    return document, take_notes(document)


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
    """Return ``attention.layers.0`` as the path of a key."""
    return tuple(int(part) if re.fullmatch(r"-?\d{1,9}", part) else part for part in dotted.split("."))


def set_key(document: Document, path: KeyPath, value: Any, place: str) -> None:
    """Set the key at ``path`` to a value given at ``place``; make the sections on the way that are not there."""
    parent = document.data
    for depth, part in enumerate(path[:-1], 1):
        if isinstance(parent.get(part), str) and path[0] == "attention":
            parent[part] = spelled_out(parent[part])
        if part not in parent:
            parent[part] = {}
            document.places[path[:depth]] = place
        parent = parent[part]
        if not isinstance(parent, dict):
            document.faults.append(Fault(path[:depth], "holds a value, not keys of its own", place))
            return
    parent[path[-1]] = value
    document.places = {known: at for known, at in document.places.items() if known[: len(path)] != path}
    document.moved = {known: at for known, at in document.moved.items() if known[: len(path)] != path}
    document.places[path] = place


def _validate(document: Document, kinds: Kinds) -> dict[str, Any]:
    """Return the sections that are sound; the faults of the others become the document's."""
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
        kind = _kind_of(name, data, kinds) or info.annotation
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kind, info])  # type: ignore[arg-type]
            sound[name] = adapter.validate_python(data[name])
        except ValidationError as error:
            document.faults += faults_of(error, (name,), kind)
            if kind is TimmModel:
                document.faults += timm_faults(data[name], kinds)
    return sound


def _kind_of(section: str, data: Mapping[str, Any], kinds: Kinds) -> type[BaseModel] | None:
    """Return the kind of a section that the document means, where there are several."""
    if section == "model":
        return model_kind(data[section], kinds)
    if section == "data":
        return kinds[model_kind(data.get("model"), kinds)]
    return None


def _contradictions(sections: Mapping[str, Any]) -> Iterable[Fault]:
    """Yield values that are sound alone and not together."""
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
