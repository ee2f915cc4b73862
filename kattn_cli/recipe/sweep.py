"""Recipes that stand for several: ``sweep:`` in the file, or ``--over`` on the command line. Never imports torch.

A mapping is a grid, ``sweep: {attention.eta: [0.1, 0.2], seed: [0, 1, 2]}``; a list of mappings is a list of settings,
``sweep: [{attention.eta: 0.1, attention.s: 20}, {attention: softmax}]``. What comes of it are points: one recipe and
seed each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import yaml

from kattn_cli.recipe.faults import RecipeFaults, show
from kattn_cli.recipe.files import Source
from kattn_cli.recipe.load import SWEEP, Check, Trial, apply_override, filled, key_path, read_recipe, set_key
from kattn_cli.recipe.model import Kinds
from kattn_cli.recipe.schema import Recipe, per_seed
from kattn_cli.recipe.strict_yaml import COMMAND_LINE, Document, Fault, KeyPath, parse

MAX_POINTS = 10_000
NOT_SWEPT = {
    "name": "cannot be swept: all points of a sweep are runs of one recipe",
    "seeds": 'cannot be swept; sweep over "seed"',
    SWEEP: "cannot be swept: a sweep holds no sweep",
}


@dataclass(frozen=True)
class Setting:
    """A key with one of the values it is to take: where that stands, and where the key does."""

    key: str
    value: Any
    path: KeyPath
    whole: KeyPath
    place: str


Combination = Sequence[Setting]


def combinations(document: Document, over: Sequence[str], given: Sequence[str]) -> list[Combination]:
    """Return all settings to try together, at least ``()``; what is wrong with them becomes faults of the document.

    Args:
        document: a recipe's file. Its ``sweep`` is taken out.
        over: ``attention.eta=[0.1,0.2]``: keys besides the file's, or in place of the file's.
        given: keys that have a value for all points.
    """
    asked = document.data.pop(SWEEP, {})
    listed: list[Combination] = [()]
    axes: dict[str, list[Setting]] = {}
    if isinstance(asked, dict):
        axes = dict(_grid(document, asked))
    elif isinstance(asked, list) and asked:
        listed = list(_list(document, asked))
    else:
        expected = "expected a mapping of keys to lists of values, or a list of mappings"
        document.faults.append(Fault((SWEEP,), f"{expected}, not {show(asked) if asked != [] else 'an empty list'}"))
    for text in over:
        key, values = _over(document, text)
        axes[key] = values
    for twice in {one.key for settings in listed for one in settings} & set(axes):
        document.faults.append(Fault((f"--over {twice}",), "is in the list of the file's sweep already", COMMAND_LINE))
    swept = {one.key: one for settings in [*listed, *axes.values()] for one in settings}
    document.faults += _refused(swept, given)
    axes = {key: axis for key, axis in axes.items() if axis and key not in NOT_SWEPT}
    count = len(listed) * prod(len(axis) for axis in axes.values())
    if count > MAX_POINTS:
        document.faults.append(Fault((SWEEP,), f"comes to {count:,} points; {MAX_POINTS:,} are the most"))
        return [()]
    return [[*settings, *point] for settings in listed for point in product(*axes.values())]


def _grid(document: Document, asked: Mapping[Any, Any]) -> Iterator[tuple[str, list[Setting]]]:
    for key, values in asked.items():
        path = (SWEEP, key)
        if isinstance(values, list) and values:
            places = [document.places.get((*path, index), "") for index in range(len(values))]
            yield (
                str(key),
                [
                    Setting(str(key), value, (SWEEP, f"{key}[{index}]"), path, place)
                    for index, (value, place) in enumerate(zip(values, places, strict=True))
                ],
            )
        else:
            found = "an empty one" if values == [] else show(values)
            hint = f"; write {key}.KEY: [… , …]" if isinstance(values, dict) else ""
            document.faults.append(Fault(path, f"expected a list of values to try, not {found}{hint}"))


def _list(document: Document, asked: Sequence[Any]) -> Iterator[Combination]:
    for index, settings in enumerate(asked):
        if not isinstance(settings, dict) or not settings:
            expected = "expected a mapping of keys to values, such as {attention.eta: 0.1}"
            place = document.places.get((SWEEP, index), "")
            document.faults.append(Fault((f"{SWEEP}[{index}]",), f"{expected}, not {show(settings or None)}", place))
            continue
        paths = {key: (f"{SWEEP}[{index}]", str(key)) for key in settings}
        yield [
            Setting(str(key), value, paths[key], paths[key], document.places.get((SWEEP, index, key), ""))
            for key, value in settings.items()
        ]


def _over(document: Document, text: str) -> tuple[str, list[Setting]]:
    """Read one ``KEY=[VALUE,VALUE]``; the brackets may be left out."""
    key, equals, values = text.partition("=")
    whole = (f"--over {key}",)
    read = parse(values if values.lstrip().startswith("[") else f"[{values}]")
    if not equals or not key or read.faults or not isinstance(read.data, list) or not read.data:
        wrong = "; ".join(fault.message for fault in read.faults)
        expected = "expected KEY=[VALUE,VALUE], for example attention.eta=[0.1,0.2]"
        document.faults.append(Fault(whole, f"{expected}{f' ({wrong})' if wrong else ''}", COMMAND_LINE))
        return key, []
    return key, [
        Setting(key, value, (f"--over {key}[{index}]",), whole, COMMAND_LINE) for index, value in enumerate(read.data)
    ]


def _refused(swept: Mapping[str, Setting], given: Sequence[str]) -> Iterator[Fault]:
    for key, setting in swept.items():
        if key in NOT_SWEPT:
            yield Fault(setting.whole, NOT_SWEPT[key], setting.place)
        elif "" in key.split("."):
            yield Fault(setting.whole, "expected a key such as attention.eta", setting.place)
        elif key in given:
            yield Fault(setting.whole, f"is swept, and {key}=… gives it one value: leave one of the two out")


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
        """Return the settings as ``key=value``."""
        return [f"{key}={spelled(value)}" for key, value in self.settings.items()]


def spelled(value: Any) -> str:
    """Return a value as one would give it on the command line."""
    if isinstance(value, str):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def load_points(
    source: Path | Source,
    kinds: Kinds,
    overrides: Sequence[str] = (),
    over: Sequence[str] = (),
    seeds: Sequence[int] = (),
    *,
    check: Check | None = None,
    trial: Trial | None = None,
    complete: Callable[[Recipe], Recipe] = lambda recipe: recipe,
) -> list[Point]:
    """Return the points of a file, or of one of its variants, each a recipe without a fault.

    Args:
        overrides: ``train.epochs=5``, for all points.
        over: ``attention.eta=[0.1,0.2]``: keys that the grid has besides the file's, or in place of the file's.
        seeds: those of each point, by default the recipe's; not together with a swept ``seed``.
        kinds, check, trial: as :func:`~kattn_cli.recipe.load.load_recipe` takes them.
        complete: writes the defaults out.

    Raises:
        RecipeError: naming every fault of every point, each with its line, its key and what was expected.
    """
    document, _ = read_recipe(source)
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
        points = list(_points(document, chosen, seeds, kinds, check, trial, complete))
    if document.faults:
        raise RecipeFaults.of(str(source), document)
    return points


def _points(
    document: Document,
    chosen: Sequence[Combination],
    seeds: Sequence[int],
    kinds: Kinds,
    check: Check | None,
    trial: Trial | None,
    complete: Callable[[Recipe], Recipe],
) -> Iterator[Point]:
    """Yield the points that are sound; the faults of all become the document's."""
    sound = not document.faults
    found: list[list[Fault]] = []
    known: dict[str, Point] = {}
    for settings in chosen:
        own = Document(deepcopy(document.data), dict(document.places), moved=dict(document.moved))
        for one in settings:
            set_key(own, key_path(one.key), deepcopy(one.value), one.place)
        recipe = filled(own, kinds, check=check, trial=trial)
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
    """Yield the faults of all combinations, each once, at the value it is about.

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
            moved = Fault((*about.path, *rest), fault.message, about.place) if about else fault
            seen.setdefault(moved, (about, []))[1].append(number)
    for fault, (about, numbers) in seen.items():
        having = [n for n, settings in enumerate(chosen) if about is None or about in settings]
        if numbers == having:
            yield fault
        else:
            first = " ".join(f"{one.key}={spelled(one.value)}" for one in chosen[numbers[0]] if one is not about)
            count = f"with {first}" if len(numbers) == 1 else f"in {len(numbers)} points, the first with {first}"
            yield Fault(fault.path, f"{fault.message} ({count})", fault.place)


def _is_about(path: KeyPath, key: str) -> bool:
    swept = key_path(key)
    return path[: len(swept)] == swept
