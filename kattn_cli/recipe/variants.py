"""A file of recipes that are compared: what they share, and ``variants``, what sets each apart. Never imports torch.

.. code-block:: yaml

    name: digits
    data: {name: digits}
    train: {epochs: 18, lr: 3e-3}
    variants:
      softmax:
        about: The baseline
        expect: {top-1: [95, 98]}
        attention: softmax
      rpc:
        attention: {name: rpc, iterations: 4}
        train: {lr: 1e-3}

A variant's recipe is named ``digits/rpc``. Of a section that the file has too, a variant gives single keys
(``train`` above); one that has a ``name`` begins the section anew. ``about`` and ``expect`` are for readers and tables;
they are no part of the recipe, and a file of a single recipe may have them, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from kattn_cli.errors import did_you_mean
from kattn_cli.recipe.faults import show
from kattn_cli.recipe.strict_yaml import Document, Fault, KeyPath

VARIANTS, ABOUT, EXPECT = "variants", "about", "expect"
NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
Expected = float | tuple[float, float]


@dataclass(frozen=True)
class Notes:
    """What a recipe says of itself: a line of words, and the value or ``(least, most)`` to expect of each measure."""

    about: str = ""
    expect: Mapping[str, Expected] = field(default_factory=dict)

    @property
    def expected(self) -> str:
        """Return what to expect in words, ``top-1 95 to 98``."""
        values = ((measure, value if isinstance(value, tuple) else (value,)) for measure, value in self.expect.items())
        return ", ".join(f"{measure} {' to '.join(f'{one:g}' for one in value)}" for measure, value in values)


def variant_names(document: Document) -> list[str]:
    """Return the names of a file's variants; none where it stands for a single recipe, or where they are at fault."""
    found = document.data.get(VARIANTS) if isinstance(document.data, dict) else None
    return [str(name) for name in found] if isinstance(found, dict) else []


def chosen(document: Document, variant: str) -> Document:
    """Return the recipe of one variant; its keys know the lines at which they stand in the file.

    Faults of the ``variants`` key itself become the document's.
    """
    faults = _faults_of_all(document)
    if faults:
        return Document(document.data, document.places, [*document.faults, *faults])
    whole = (VARIANTS, variant)
    data = {key: value for key, value in deepcopy(document.data).items() if key != VARIANTS}
    own = Document(data, dict(document.places), list(document.faults))
    own.moved[()] = whole
    own.places[()] = document.places[whole]
    for key, value in (document.data[VARIANTS][variant] or {}).items():
        path = (*whole, key)
        shared = data.get(key)
        if key == "attention" and isinstance(shared, str):
            shared = {"name": shared}
        if isinstance(value, dict) and isinstance(shared, dict) and "name" not in value:
            data[key] = {**shared, **deepcopy(value)}
            for part in value:
                _move(own, (*path, part), (key, part))
        else:
            data[key] = deepcopy(value)
            _move(own, path, (key,))
    if isinstance(data.get("name"), str):
        data["name"] = f"{data['name']}/{variant}"
    return own


def _move(document: Document, source: KeyPath, target: KeyPath) -> None:
    """Let the key at ``target`` be the one that stands at ``source`` in the file, with all below it."""
    found = {path: place for path, place in document.places.items() if path[: len(source)] == source}
    document.places = {path: place for path, place in document.places.items() if path[: len(target)] != target}
    for path, place in found.items():
        document.places[target + path[len(source) :]] = place
    document.moved[target] = source


def _faults_of_all(document: Document) -> list[Fault]:
    """Return what is wrong with the ``variants`` key of a file, whichever variant is asked for."""
    variants = document.data[VARIANTS]
    if not isinstance(variants, dict) or not variants:
        expected = "expected a mapping of names to what sets each apart"
        return [Fault((VARIANTS,), f"{expected}, not {show(variants if variants != {} else None)}")]
    faults = []
    for name, own in variants.items():
        path = (VARIANTS, name)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            faults.append(Fault(path, "expected a name of letters, digits and . _ + -"))
        if own is not None and not isinstance(own, dict):
            faults.append(Fault(path, f"expected a mapping of keys, not {show(own)}"))
            continue
        for key, message in {
            "name": f"is the file's name and the variant's, such as {document.data.get('name', 'NAME')}/{name}",
            VARIANTS: "a variant has none of its own",
        }.items():
            if own and key in own:
                faults.append(Fault((*path, key), message))
    return faults


def take_notes(document: Document) -> Notes:
    """Take ``about`` and ``expect`` out of a recipe's document; what is wrong with them becomes its faults."""
    about, expect = document.data.pop(ABOUT, ""), document.data.pop(EXPECT, {})
    if not isinstance(about, str):
        document.faults.append(Fault((ABOUT,), f"expected a line of text, not {show(about)}"))
    if not isinstance(expect, dict):
        document.faults.append(Fault((EXPECT,), f"expected a mapping of measures to numbers, not {show(expect)}"))
        expect = {}
    values: dict[str, Expected] = {}
    for measure, value in expect.items():
        if _is_number(value):
            values[str(measure)] = value
        elif isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
            values[str(measure)] = (value[0], value[1])
        else:
            message = f"expected a number, or the least and the most: [95, 98], not {show(value)}"
            document.faults.append(Fault((EXPECT, measure), message))
    return Notes(str(about), values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def no_such_variant(file: str, document: Document, variant: str) -> str:
    """Return the message that a file has no variant of this name."""
    names = variant_names(document)
    if not names:
        return f"{file}: has no variants, so there is no {variant} in it"
    return f'{file}: has no variant "{variant}"{did_you_mean(variant, names)} (it has {", ".join(names)})'
