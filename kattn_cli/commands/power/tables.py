"""What a comparison can see, and what it would take to see more, as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kattn_cli.commands.study.arms import arms_of
from kattn_cli.commands.study.run import runs_by_arm
from kattn_cli.console import console, print_wide
from kattn_cli.errors import KattnError
from kattn_cli.runs.find import find_runs
from kattn_cli.runs.run import Run
from kattn_cli.statistics.effect import Effect
from kattn_cli.studies.evidence import Numbers, numbers, numbers_of
from kattn_cli.studies.judgement import effects, effects_of
from kattn_cli.studies.study import Measure, Study
from kattn_cli.tables.text import short

COLUMNS = [
    "comparison",
    "measure",
    "effect",
    "seeds",
    "images",
    "power",
    "smallest seen",
    "seeds it takes",
    "or images",
]


@dataclass(frozen=True)
class Wanted:
    """``effect``: by default the margin; ``power``: how sure to see it."""

    effect: float | None
    level: float
    power: float


def of_study(study: Study, wanted: Wanted, results: Path) -> None:
    """Print what each comparison of a study can see, the primary ones first.

    Raises:
        KattnError: if nothing of it is measured.
    """
    runs = runs_by_arm(arms_of(study, results, data=False))
    found = {name: numbers(study, runs, name) for name in study.measures}
    seen = {name: effects_of(study, name, of_arms) for name, of_arms in found.items()}
    comparisons = sorted(study.comparisons, key=lambda one: not one.primary)
    rows = [
        row(f"{one.first} − {one.second}", name, effect, wanted, study.measures[name].margin or math.nan)
        for one in comparisons
        for name in study.measured(one)
        if (effect := seen[name].get((one.first, one.second))) is not None
    ]
    if not rows:
        raise KattnError(f"{study.name}: nothing is measured yet that its comparisons share; a few seeds are a pilot")
    console.print(study.question)
    _print(rows, wanted)


def of_runs(
    first: Sequence[str],
    second: Sequence[str],
    table: str,
    where: Sequence[str],
    value: str,
    wanted: Wanted,
    results: Path,
) -> None:
    """Print what two groups of runs can see of each other.

    Raises:
        KattnError: if they share no seed that has the measure.
    """
    cells = dict(_cell(text) for text in where)
    measure = Measure(run="train", table=table, where=cells, value=value, margin=1.0)
    name = " ".join([value, *(f"{column} {cell}" for column, cell in cells.items())])
    arms = {"first": (_by_seed(results, first), ""), "second": (_by_seed(results, second), "")}
    found: Mapping[str, Numbers] = numbers_of(measure, name, arms)
    effect = effects([("first", "second")], found).get(("first", "second"))
    if effect is None:
        raise KattnError(f"{' '.join(first)} and {' '.join(second)}: share no seed with a row of {table} that fits")
    _print([row(f"{' '.join(first)} − {' '.join(second)}", name, effect, wanted, 1.0)], wanted)


def row(comparison: str, measure: str, effect: Effect, wanted: Wanted, margin: float) -> list[str]:
    """Return the cells of one comparison, as :data:`COLUMNS`."""
    size = wanted.effect or margin
    reached = effect.power(size, wanted.level)
    images = effect.images_for(size, wanted.level, wanted.power)
    seeds = effect.seeds_for(size, wanted.level, wanted.power)
    return [
        comparison,
        measure,
        short(size),
        str(effect.seeds),
        f"{effect.images:,}" if effect.images else "",
        "" if math.isnan(reached) else f"{reached:.2f}",
        short(effect.smallest(wanted.level, wanted.power)),
        "no number of them" if seeds is None else f"{seeds:,}",
        f"{images:,}" if images else ("no number of them" if effect.images else ""),
    ]


def _print(rows: Sequence[Sequence[str]], wanted: Wanted) -> None:
    print_wide(COLUMNS, rows)
    console.print(
        f"Power is for a difference of the size in column effect, two-sided at {wanted.level:g}; smallest seen, seeds "
        f"and images are for a power of {wanted.power:g}, each with the other as it is."
    )


def _by_seed(results: Path, references: Sequence[str]) -> dict[int, Run]:
    return {run.seed: run for run in find_runs(results, references)}


def _cell(text: str) -> tuple[str, str]:
    column, equals, cell = text.partition("=")
    if not equals or not column:
        raise KattnError(f"--where {text}: expected COLUMN=VALUE, for example attack=pgd")
    return column, cell
