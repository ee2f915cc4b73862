"""The settings that a sweep tries: a grid or a list, from the file and the command line. Never imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from kattn_cli.recipe.faults import show
from kattn_cli.recipe.strict_yaml import Document, Fault, KeyPath, parse

SWEEP = "sweep"
"""The key of a file that stands for several recipes."""
COMMAND_LINE = "command line"
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
    """All settings to try together, at least ``()``; what is wrong with them becomes faults of the document.

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
    """One ``KEY=[VALUE,VALUE]``; the brackets may be left out."""
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
