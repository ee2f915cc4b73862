"""Runs that can be laid beside each other: those of one folder of recipes on one data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kattn_cli.report.page import slug, unique
from kattn_cli.runs.run import Snapshot
from kattn_cli.tables.bits import Right
from kattn_cli.tables.frames import shared_folder
from kattn_cli.tables.values import right_by_quantity, values

COSTS = ("params", "train s")
"""Quantities of a comparison that are not how good a model is."""


@dataclass(frozen=True)
class Group:
    """``runs``: one a label and seed; ``slug``: what its files are called after."""

    name: str
    data: str
    slug: str
    runs: Sequence[Snapshot]

    def __reduce__(self) -> tuple[type[Group], tuple[Any, ...]]:
        """Go to another process without what was read, which is still being added to."""
        return type(self), (self.name, self.data, self.slug, self.runs)

    @cached_property
    def by_label(self) -> Mapping[str, Sequence[Snapshot]]:
        """The runs without the folder that all share: softmax first, then symmetric attention, the others by name."""
        folder = shared_folder(run.label for run in self.runs)
        found: dict[str, list[Snapshot]] = {}
        for run in sorted(self.runs, key=lambda run: run.seed):
            found.setdefault(run.label.removeprefix(folder), []).append(run)
        first = ("softmax", "symmetric")
        return dict(sorted(found.items(), key=lambda one: (_place(one[0], first), one[0])))

    @property
    def labels(self) -> list[str]:
        return list(self.by_label)

    @cached_property
    def mechanisms(self) -> Mapping[str, str]:
        """The mechanism of each label."""
        return {label: str(runs[0].manifest.get("mechanism", label)) for label, runs in self.by_label.items()}

    @cached_property
    def recipes(self) -> Mapping[str, Mapping[str, Any]]:
        """The recipe of each label's first seed."""
        return {label: runs[0].recipe for label, runs in self.by_label.items()}

    @cached_property
    def measured(self) -> Mapping[str, Mapping[str, Mapping[int, float]]]:
        """Quantity → label → seed → value, of how good the models are; in the order of the labels."""
        found: dict[str, dict[str, dict[int, float]]] = {}
        for quantity, rows in values(self.runs).groupby("quantity", sort=False):
            if quantity not in COSTS:
                parts = {label: rows[rows["label"] == label] for label in self.labels}
                found[str(quantity)] = {
                    label: dict(zip(part["run_seed"], part["value"], strict=True))
                    for label, part in parts.items()
                    if len(part)
                }
        return found

    @cached_property
    def right(self) -> Mapping[str, Mapping[str, Right]]:
        """Quantity → label → seed → whether each image was right, of labels whose rows all say so."""
        return right_by_quantity(self.runs)


def groups_of(runs: Sequence[Snapshot]) -> list[Group]:
    """Return the runs by the folder of the recipe's name and the data set, in the order of their names."""
    found: dict[tuple[str, str], list[Snapshot]] = {}
    for run in runs:
        found.setdefault((run.name.rpartition("/")[0], _data(run.recipe)), []).append(run)
    groups: list[Group] = []
    for (folder, data), members in sorted(found.items()):
        parts = [part for part in (folder, "" if data == folder.rpartition("/")[2] else data) if part]
        name = ": ".join(parts) or "runs"
        groups.append(Group(name, data, unique(slug(name), [group.slug for group in groups]), members))
    return groups


def _data(recipe: Mapping[str, Any]) -> str:
    """Return ``digits``; of the archives that hold many sets, which one: ``JapaneseVowels``."""
    section = recipe.get("data") or {}
    return str(section.get("set") or section.get("name") or "")


def _place(label: str, first: Sequence[str]) -> int:
    name = label.partition(" ")[0].rpartition("/")[2]
    return first.index(name) if name in first else len(first)
