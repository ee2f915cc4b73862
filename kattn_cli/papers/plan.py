"""What it takes to make one of the papers' tables again: which recipes, which measurements, which data. No torch.

A plan is one entry of a paper's ``plan.yaml``, or of :data:`OWN`; its name is ``<paper>/<table>``. Each has a ``full``
size, the paper's, a ``small`` one for two cores, or one of the two. A line of ``prepare`` is a subcommand that makes
the data; one of ``train`` a recipe and overrides; one of ``measure`` a subcommand and its options, for all runs or for
those of the recipes it is ``on``; one of ``run`` a subcommand that needs no runs. ``{results}`` is the folder of
results. Entries that begin with a dot are parts of others.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from kattn_cli.errors import KattnError, did_you_mean
from kattn_cli.papers import PAPERS

OWN = Path(__file__).parent / "kattn.yaml"
"""The plans, named ``kattn/…``, of what belongs to no single table of a paper."""
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
        """Return the recipes that it trains, each once."""
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
        """Return the plan at one size.

        Raises:
            KattnError: if it has none such.
        """
        chosen = self.full if name == "full" else self.small
        if chosen is None:
            other = "has no small size; leave out --small" if name == "small" else "has a small size alone: add --small"
            raise KattnError(f"{called}: {other}")
        return chosen


def plans() -> Mapping[str, Plan]:
    """Return all plans by name, ``rpc/table2``, in the order of the papers' tables."""
    files = {paper.name: paper.plan for paper in PAPERS.values() if paper.plan.is_file()}
    return {
        f"{name}/{table}": plan for name, path in {**files, "kattn": OWN}.items() for table, plan in _read(path).items()
    }


@cache
def _read(path: Path) -> Mapping[str, Plan]:
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {table: Plan.model_validate(entry) for table, entry in entries.items() if table[0] != "."}


def find_plans(names: Sequence[str]) -> dict[str, Plan]:
    """Return the plans that ``names`` mean: a table, or a paper with all of its tables.

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


def needs(names: Sequence[str]) -> str:
    """Return hours and data of each size of all tables, or those of some papers, as lines.

    Raises:
        KattnError: if a name is none of a table or paper.
    """
    for name in names:
        find_plans([name])
    chosen = {
        name: plan for name, plan in plans().items() if not names or name in names or name.partition("/")[0] in names
    }
    return "\n".join(line for name, plan in chosen.items() for line in (f"{name}: {plan.title}", *_needs(plan)))


def _needs(plan: Plan) -> Iterator[str]:
    if plan.full:
        yield f"  full     {f'{plan.full.hours:,g} h of an H100':20}  {plan.full.data}"
    if plan.small:
        yield f"  --small  {f'{plan.small.hours:g} h of two cores':20}  {plan.small.data}"
