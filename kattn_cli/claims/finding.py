"""A claim, its test, and what came out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from kattn_cli.analysis.paired import FEW_SEEDS
from kattn_cli.analysis.statistics import mean_interval
from kattn_cli.claims.evidence import Evidence


class Verdict(str, Enum):
    """Of a claim, from an interval and a bound."""

    holds = "holds"
    does_not_hold = "does not hold"
    cannot_be_told = "cannot be told at this size"
    not_measured = "not measured"


@dataclass(frozen=True)
class Finding:
    """What one label's runs say: the mean over seeds, its 95 % Student-t interval, and figures beside it."""

    label: str
    mean: float
    low: float
    high: float
    seeds: int
    verdict: Verdict
    beside: str = ""


@dataclass(frozen=True)
class Claim:
    """``criterion`` says what is measured and when the claim holds; ``command`` measures it."""

    where: str
    text: str
    criterion: str
    command: str
    judge: Callable[[Evidence], list[Finding]]


@dataclass(frozen=True)
class Paper:
    """``figures``: what the names of the figures begin with that its claims rest on."""

    title: str
    claims: Sequence[Claim]
    figures: tuple[str, ...]


def judged(
    label: str,
    by_seed: Mapping[int, float],
    *,
    above: float | None = None,
    below: float | None = None,
    beside: str = "",
) -> Finding:
    """The claim says that the number is ``above`` a bound, or ``below`` one.

    It holds, or does not hold, where the whole interval is on one side; else it cannot be told, as with fewer than
    three seeds, which have no interval worth the name. Seeds whose number is not one are left out.
    """
    values = [value for value in by_seed.values() if math.isfinite(value)]
    if not values:
        return Finding(label, math.nan, math.nan, math.nan, 0, Verdict.cannot_be_told, beside)
    mean, half = mean_interval(values)
    low, high = mean - half, mean + half
    bound = above if above is not None else below
    assert bound is not None
    over, under = low > bound, high < bound
    verdict = Verdict.cannot_be_told
    if len(values) >= FEW_SEEDS and (over or under):
        verdict = Verdict.holds if over == (above is not None) else Verdict.does_not_hold
    return Finding(label, mean, low, high, len(values), verdict, beside)
