"""A group's settings: what all recipes share, once, and in what they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kattn_cli.report.groups import Group
from kattn_cli.report.page import Part
from kattn_cli.runs.run import CHANGES_NOTHING
from kattn_cli.tables.text import Table

ABSENT = "–"


def settings_part(group: Group) -> Part:
    """Return two tables; that of differences only where there are any."""
    flat = {label: _counting(recipe) for label, recipe in group.recipes.items() if recipe}
    if not flat:
        return Part("Settings", ["The runs have no recipe."])
    keys = list(dict.fromkeys(key for recipe in flat.values() for key in recipe))
    shared = [key for key in keys if len({recipe.get(key, ABSENT) for recipe in flat.values()}) == 1]
    differing = [key for key in keys if key not in shared]
    first = next(iter(flat.values()))
    parts = []
    if differing:
        rows = [[label, *(recipe.get(key, ABSENT) for key in differing)] for label, recipe in flat.items()]
        caption = f"{group.name}, settings in which the recipes differ."
        parts.append(Table(f"{group.slug}-differing", caption, ["", *differing], rows, len(differing) + 1))
    if shared:
        alone = "one recipe" if len(flat) == 1 else "all recipes"
        caption = f"{group.name}, settings of {alone}."
        parts.append(Table(f"{group.slug}-settings", caption, ["key", "value"], [[k, first[k]] for k in shared], 2))
    return Part("Settings", parts)


def _counting(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that change a number."""
    return {key: value for key, value in flattened(recipe) if key not in CHANGES_NOTHING}


def flattened(recipe: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield ``model.depth``, ``2``; the attention as one: ``rpc (iterations 4, …); layers 1: → symmetric``."""
    for key, value in recipe.items():
        if key == "attention" and isinstance(value, Mapping):
            yield key, attention(value)
        elif isinstance(value, Mapping) and value:
            yield from ((f"{key}.{below}", value_below) for below, value_below in flattened(value))
        else:
            yield key, _formatted(value)


def attention(section: Mapping[str, Any]) -> str:
    """Return a mechanism with its options, and those of other layers."""
    layers = section.get("layers") or {}
    return "; ".join([_mechanism(section), *(f"layers {where} → {_mechanism(one)}" for where, one in layers.items())])


def _mechanism(section: Mapping[str, Any]) -> str:
    options = [f"{key} {_formatted(value)}" for key, value in section.items() if key not in ("name", "layers")]
    chosen = f" ({', '.join(options)})" if options else ""
    return f"{section.get('name')}{chosen}"


def _formatted(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_formatted(one)}" for key, one in value.items()) or "none"
    return ", ".join(map(_formatted, value)) if isinstance(value, list) else str(value)
