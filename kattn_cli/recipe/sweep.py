"""Recipes that stand for several: ``sweep:`` in the file, or ``--over`` on the command line. Never imports torch.

A mapping is a grid, ``sweep: {attention.eta: [0.1, 0.2], seed: [0, 1, 2]}``; a list of mappings is a list of settings,
``sweep: [{attention.eta: 0.1, attention.s: 20}, {attention: softmax}]``. What comes of it are points: one recipe and
seed each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kattn_cli.errors import RecipeError
from kattn_cli.recipe.faults import report
from kattn_cli.recipe.grid import SWEEP, Combination, Setting, combinations
from kattn_cli.recipe.schema import (
    Check,
    Recipe,
    Trial,
    apply_override,
    filled,
    key_path,
    per_seed,
    read_recipe,
    set_key,
)
from kattn_cli.recipe.strict_yaml import Document, Fault, KeyPath


@dataclass(frozen=True)
class Point:
    """One recipe and seed of a sweep; ``settings`` are the swept keys without ``seed``."""

    number: int
    settings: Mapping[str, Any]
    recipe: Recipe

    def __str__(self) -> str:
        return " ".join([*self.overrides, f"seed={self.recipe.seed}"])

    @property
    def overrides(self) -> list[str]:
        """The settings as ``key=value``."""
        return [f"{key}={spelled(value)}" for key, value in self.settings.items()]


def spelled(value: Any) -> str:
    """A value as one would give it on the command line."""
    if isinstance(value, str):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def load_points(
    path: Path,
    overrides: Sequence[str] = (),
    over: Sequence[str] = (),
    seeds: Sequence[int] = (),
    *,
    check: Check | None = None,
    trial: Trial | None = None,
    complete: Callable[[Recipe], Recipe] = lambda recipe: recipe,
) -> list[Point]:
    """The points of the recipe at ``path``, each a recipe without a fault.

    Args:
        overrides: ``train.epochs=5``, for all points.
        over: ``attention.eta=[0.1,0.2]``: keys that the grid has besides the file's, or in place of the file's.
        seeds: those of each point, by default the recipe's; not together with a swept ``seed``.
        check, trial: as :func:`~kattn_cli.recipe.schema.load_recipe` takes them.
        complete: writes the defaults out.

    Raises:
        RecipeError: naming every fault of every point, each with its line, its key and what was expected.
    """
    document = read_recipe(path)
    points: list[Point] = []
    if not document.faults:
        if not (SWEEP in document.data or over or seeds or document.data.get("seeds")):
            wanted = "is missing, and neither --over KEY=[VALUE,VALUE] nor --seed says what to try"
            document.faults.append(Fault((SWEEP,), wanted))
        chosen = combinations(document, over, [one.partition("=")[0] for one in overrides])
        for override in overrides:
            apply_override(override, document)
        swept = next((one for settings in chosen for one in settings if one.key == "seed"), None)
        if seeds and swept:
            twice = "is swept, and --seed gives seeds too: leave one of the two out"
            document.faults.append(Fault(swept.whole, twice, swept.place))
        points = list(_points(document, chosen, seeds, check, trial, complete))
    if document.faults:
        raise RecipeError(report(str(path), document))
    return points


def _points(
    document: Document,
    chosen: Sequence[Combination],
    seeds: Sequence[int],
    check: Check | None,
    trial: Trial | None,
    complete: Callable[[Recipe], Recipe],
) -> Iterator[Point]:
    """The sound ones; the faults of all become the document's."""
    sound = not document.faults
    found: list[list[Fault]] = []
    known: dict[str, Point] = {}
    for settings in chosen:
        own = Document(deepcopy(document.data), dict(document.places))
        for one in settings:
            set_key(own, key_path(one.key), deepcopy(one.value), one.place)
        recipe = filled(own, check=check, trial=trial)
        found.append(own.faults)
        values = {one.key: one.value for one in settings if one.key != "seed"}
        for of_seed in _of_seeds(complete(recipe), settings, seeds) if recipe else ():
            point = Point(len(known) + 1, values, of_seed)
            first = known.setdefault(of_seed.to_yaml(), point)
            if first is not point and sound:
                same = f"comes to one recipe and seed twice: {first}, and {point}"
                document.faults.append(Fault((SWEEP,), same))
            elif first is point:
                yield point
    document.faults += gathered(chosen, found)


def _of_seeds(recipe: Recipe, settings: Combination, seeds: Sequence[int]) -> list[Recipe]:
    swept = any(one.key == "seed" for one in settings)
    return per_seed(recipe, [recipe.seed] if swept else seeds)


def gathered(chosen: Sequence[Combination], found: Sequence[Iterable[Fault]]) -> Iterator[Fault]:
    """The faults of all combinations, each told once, at the value it is about.

    Args:
        chosen: the combinations of settings.
        found: the faults of each of them.
    """
    seen: dict[Fault, tuple[Setting | None, list[int]]] = {}
    for number, (settings, faults) in enumerate(zip(chosen, found, strict=True)):
        for fault in faults:
            own = [one for one in settings if _is_about(fault.path, one.key)]
            about = max(own, key=lambda one: len(key_path(one.key)), default=None)
            rest = fault.path[len(key_path(about.key)) :] if about else ()
            told = Fault((*about.path, *rest), fault.message, about.place) if about else fault
            seen.setdefault(told, (about, []))[1].append(number)
    for told, (about, numbers) in seen.items():
        having = [n for n, settings in enumerate(chosen) if about is None or about in settings]
        if numbers == having:
            yield told
        else:
            first = " ".join(f"{one.key}={spelled(one.value)}" for one in chosen[numbers[0]] if one is not about)
            count = f"with {first}" if len(numbers) == 1 else f"in {len(numbers)} points, the first with {first}"
            yield Fault(told.path, f"{told.message} ({count})", told.place)


def _is_about(path: KeyPath, key: str) -> bool:
    swept = key_path(key)
    return path[: len(swept)] == swept
