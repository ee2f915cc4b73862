"""Mechanisms that a user names, with options, or by the recipes that use them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count

from kattn_cli.attention.options import all_options, check_options
from kattn_cli.errors import RecipeError
from kattn_cli.experiment import recipes
from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.schema import Mechanism
from kattn_cli.recipe.strict_yaml import parse


def named_mechanisms(names: Iterable[str], references: Sequence[str] = ()) -> dict[str, Mechanism]:
    """Return mechanisms by label: the name, and where one name has several options, the later ones numbered.

    Args:
        names: ``rpc``, ``my_file.py:MyAttention``, or with options ``rpc iterations=6``.

    Raises:
        RecipeError: if one does not exist, or its options are at fault.
    """
    chosen: dict[str, Mechanism] = {}
    for mechanism in (*map(mechanism_of, names), *of_recipes(references)):
        if mechanism not in chosen.values():
            name = mechanism.name.rpartition(":")[2]
            numbered = (name if k == 1 else f"{name}#{k}" for k in count(1))
            chosen[next(label for label in numbered if label not in chosen)] = mechanism
    return chosen


def of_recipes(references: Sequence[str]) -> list[Mechanism]:
    """Return the mechanisms of the recipes, those of single layers too."""
    found = []
    for path in (path for reference in references for path in find_recipes(reference)):
        attention = recipes.load(path, weights=False, data=False).attention
        found += [Mechanism(name=one.name, **one.options) for one in (attention, *attention.layers.values())]
    return found


def mechanism_of(text: str, given_as: str = "--attention ") -> Mechanism:
    """Return the mechanism that a name with options means, ``rpc iterations=6``.

    Args:
        given_as: what stood before it on the command line, for messages.

    Raises:
        RecipeError: if it does not exist, or its options are at fault.
    """
    name, *words = re.split(r"\s+(?=\w+=)", text.strip())
    options = {key: parse(value).data for key, _, value in (word.partition("=") for word in words)}
    if faults := check_options(name, options, ()):
        fault = faults[0]
        key = "".join(f" {part}:" for part in fault.path if part != "name")
        raise RecipeError(f"{given_as}{name}:{key} {fault.message}")
    return Mechanism(name=name, **all_options(name, options))
