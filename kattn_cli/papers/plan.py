"""What it takes to make one of the papers' tables again: which recipes, which measurements, which data. No torch.

A plan is one entry of ``plans/<paper>.yaml``; its name is ``<paper>/<table>``. Each has a ``full`` size, the paper's,
a ``small`` one for two cores, or one of the two. A line of ``prepare`` is a subcommand that makes the data; one of
``train`` a recipe and overrides; one of ``measure`` a subcommand and its options, for all runs or for those of the
recipes it is ``on``; one of ``run`` a subcommand that needs no runs. ``{results}`` is the folder of results. Entries
that begin with a dot are parts of others.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from kattn_cli.errors import KattnError, did_you_mean

PLANS = Path(__file__).parent / "plans"
PAPERS = ("rpc", "primal", "tost", "kattn")
"""The files of :data:`PLANS`; ``kattn`` is what belongs to no single table of a paper."""
SizeName = Literal["full", "small"]
STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class Measurement(BaseModel):
    """A subcommand and its options, for the runs of some recipes."""

    model_config = STRICT
    run: str
    on: list[str]


class Size(BaseModel):
    """A plan at one size. ``hours``: of one H100 for ``full``, of two cores for ``small``; an estimate."""

    model_config = STRICT
    prepare: list[str] = Field(default_factory=list)
    train: list[str] = Field(default_factory=list)
    measure: list[str | Measurement] = Field(default_factory=list)
    run: list[str] = Field(default_factory=list)
    data: str
    hours: Annotated[float, Field(gt=0)]
    differs: str = ""

    def recipes(self) -> list[str]:
        """The recipes that it trains, each once."""
        return list(dict.fromkeys(shlex.split(line)[0] for line in self.train))


class Plan(BaseModel):
    """One of the papers' tables, at one size at least."""

    model_config = STRICT
    title: str
    full: Size | None = None
    small: Size | None = None

    @model_validator(mode="after")
    def _can_be_made(self) -> Plan:
        if not (self.full or self.small):
            raise ValueError("a plan has a size")
        return self

    def size(self, name: SizeName, called: str) -> Size:
        """The plan at one size.

        Raises:
            KattnError: if it has none such.
        """
        chosen = self.full if name == "full" else self.small
        if chosen is None:
            other = "has no small size; leave out --small" if name == "small" else "has a small size alone: add --small"
            raise KattnError(f"{called}: {other}")
        return chosen


@cache
def plans() -> Mapping[str, Plan]:
    """All plans by name, ``rpc/table2``, in the order of the papers' tables."""
    found = dict[str, Plan]()
    for path in (PLANS / f"{paper}.yaml" for paper in PAPERS):
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
        found |= {
            f"{path.stem}/{table}": Plan.model_validate(entry) for table, entry in entries.items() if table[0] != "."
        }
    return found


def find_plans(names: Sequence[str]) -> dict[str, Plan]:
    """The plans that ``names`` mean: a table, or a paper with all of its tables.

    Raises:
        KattnError: if there is none such, with the nearest name.
    """
    known, found = plans(), dict[str, Plan]()
    for name in names:
        inside = {key: plan for key, plan in known.items() if key.startswith(f"{name}/")}
        if name in known:
            found[name] = known[name]
        elif inside:
            found |= inside
        else:
            hint = did_you_mean(name, known) or "; kattn reproduce --list shows them"
            raise KattnError(f"{name}: there is no such table{hint}")
    return found
