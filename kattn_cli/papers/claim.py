"""A claim, its test, and what came out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from kattn_cli.papers.evidence import Evidence
from kattn_cli.tables.comparison import FEW_SEEDS, Paired
from kattn_cli.tables.statistics import mean_interval


class Verdict(str, Enum):
    """What an interval and a bound say of a claim."""

    holds = "holds"
    does_not_hold = "does not hold"
    cannot_be_told = "cannot be told at this size"
    not_measured = "not measured"


@dataclass(frozen=True)
class Finding:
    """What one label's runs say: the mean over seeds, its 95 % Student-t interval, and numbers beside it.

    ``p_value``: of the two-sided t test of the seeds' numbers against the bound, below 0.05 exactly where the interval
    leaves the bound out; nan of costs, and of fewer than three seeds. ``paper_number``: what the paper prints of the
    same quantity, on its own data; nan where it prints none.
    """

    label: str
    mean: float
    low: float
    high: float
    seeds: int
    verdict: Verdict
    beside: str = ""
    p_value: float = math.nan
    paper_number: float = math.nan


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper. ``criterion`` says what is measured and when it holds; ``command`` measures it."""

    where: str
    text: str
    criterion: str
    command: str
    judge: Callable[[Evidence], list[Finding]]


def judged(
    label: str,
    by_seed: Mapping[int, float],
    *,
    above: float | None = None,
    below: float | None = None,
    beside: str = "",
    paper_number: float = math.nan,
) -> Finding:
    """Return the finding on a number that the claim says is ``above`` a bound, or ``below`` one.

    It holds, or does not hold, where the whole interval is on one side; else it cannot be told, as with fewer than
    three seeds, which have no interval worth the name, or where all seeds have one number, which has none (see
    :attr:`~kattn_cli.tables.comparison.Paired.t`). Seeds whose number is not one are left out.
    """
    values = [value for value in by_seed.values() if math.isfinite(value)]
    if not values:
        nothing = Verdict.cannot_be_told
        return Finding(label, math.nan, math.nan, math.nan, 0, nothing, beside, math.nan, paper_number)
    bound = above if above is not None else below
    assert bound is not None
    from_bound = Paired(tuple(value - bound for value in values))
    mean, half = mean_interval(values)
    half = half if from_bound.vary else math.nan
    low, high = mean - half, mean + half
    over, under = low > bound, high < bound
    verdict, p_value = Verdict.cannot_be_told, math.nan
    if len(values) >= FEW_SEEDS:
        p_value = from_bound.t
        if over or under:
            verdict = Verdict.holds if over == (above is not None) else Verdict.does_not_hold
    return Finding(label, mean, low, high, len(values), verdict, beside, p_value, paper_number)
