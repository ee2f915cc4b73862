"""Which of several mechanisms are told apart: paired tests over seeds, and Holm's correction for their number.

Never imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from kattn_cli.tables.paired import FEW_SEEDS
from kattn_cli.tables.statistics import mean_interval

LEVEL = 0.05
"""How often one of all comparisons may be told apart where nothing differs."""
TestName = Literal["t", "wilcoxon"]
BETTER, WORSE, UNTOLD, TOO_FEW = "better", "worse", "not told apart", "too few seeds to tell"
_TIES_COUNTED = 13
"""Up to so many seeds the signs of tied differences are gone through one by one."""
_ROUNDING = 1e-12
"""Differences that vary by less than this share of themselves do not vary."""


def holm(p_values: ArrayLike) -> NDArray[np.floating]:
    """Holm's (1979) step-down adjusted p-values along the last axis: to be held against the level of the whole family.

    The k-th smallest of m is multiplied by m − k + 1; none is below a smaller one's, or above 1. What is nan was not
    compared: it stays nan, and m does not count it.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, axis=-1, kind="stable")  # nan comes last
    ranked = np.take_along_axis(p, order, -1)
    compared = np.isfinite(p).sum(-1, keepdims=True)
    steps = np.fmin((compared - np.arange(p.shape[-1])) * ranked, 1.0)
    steps = np.where(np.isnan(ranked), math.nan, np.maximum.accumulate(steps, axis=-1))
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, steps, -1)
    return adjusted


@dataclass(frozen=True)
class PairedTests:
    """``gains``: the first's value less the second's, one a seed that both have."""

    gains: tuple[float, ...]

    @property
    def seeds(self) -> int:
        return len(self.gains)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The mean difference, and the half width of its 95 % Student-t interval (nan for a single seed)."""
        return mean_interval(self.gains) if self.gains else (math.nan, math.nan)

    @cached_property
    def t(self) -> float:
        """The two-sided p-value of the paired t-test; nan for fewer than two seeds.

        Where the difference is the same for every seed, it is 0, or 1 where that is no difference at all.
        """
        if self.seeds < 2:
            return math.nan
        gains = np.asarray(self.gains)
        mean, spread = gains.mean(), gains.std(ddof=1)
        if spread <= _ROUNDING * np.abs(gains).max():
            return float(mean == 0)
        return float(2 * special.stdtr(self.seeds - 1, -abs(mean) * math.sqrt(self.seeds) / spread))

    @cached_property
    def wilcoxon(self) -> float:
        """The exact two-sided p-value of Wilcoxon's signed-rank test; seeds without a difference are left out of it.

        Ties share their mean rank; beyond 13 seeds with ties, it is scipy's normal approximation. Nan without seeds.
        """
        if not self.gains:
            return math.nan
        gains = np.asarray([one for one in self.gains if one != 0])
        ranks = stats.rankdata(np.abs(gains)) * np.sign(gains)
        return _wilcoxon(tuple(sorted(ranks, key=abs))) if len(gains) else 1.0

    @property
    def least_wilcoxon(self) -> float:
        """The least p-value that Wilcoxon's test can reach with so many seeds: 2^(1 − n), of 5 seeds 0.0625."""
        return 2.0 ** (1 - self.seeds) if self.seeds else math.nan


@cache
def _wilcoxon(ranks: tuple[float, ...]) -> float:
    """Of signed ranks: of few seeds there are few of them."""
    ties = len({abs(one) for one in ranks}) < len(ranks)
    if not ties or len(ranks) > _TIES_COUNTED:
        return float(stats.wilcoxon(ranks, method="auto" if ties else "exact").pvalue)
    signed = (np.asarray(ranks),)
    return float(stats.permutation_test(signed, np.sum, permutation_type="samples", n_resamples=np.inf).pvalue)


def paired_tests(first: Mapping[int, float], second: Mapping[int, float]) -> PairedTests:
    """Of the first less the second, over the seeds whose values are numbers in both.

    Args:
        first, second: seed → value.
    """
    pairs = [(first[seed], second[seed]) for seed in sorted(first) if seed in second]
    return PairedTests(tuple(one - other for one, other in pairs if math.isfinite(one - other)))


@dataclass(frozen=True)
class Judged:
    """One comparison of a family: its p-values after Holm, and ``better``, ``worse``, ``not told apart`` or
    ``too few seeds to tell``."""

    tests: PairedTests
    t: float
    wilcoxon: float
    word: str


def judge(
    family: Sequence[PairedTests], lower_is_better: Sequence[bool] | None = None, test: TestName = "t"
) -> list[Judged]:
    """The comparisons of a family, each with its word; one without a shared seed does not count among them.

    Seeds are too few to tell where there are fewer than three; with Wilcoxon's test also where the least p-value that
    it can reach, times the number of comparisons, is above 0.05.
    """
    adjusted = {name: holm([getattr(one, name) for one in family]) for name in ("t", "wilcoxon")}
    compared = int(np.isfinite(adjusted["wilcoxon"]).sum())
    judged = []
    for index, (tests, lower) in enumerate(zip(family, lower_is_better or [False] * len(family), strict=True)):
        p_value, (mean, _) = float(adjusted[test][index]), tests.interval
        if tests.seeds < FEW_SEEDS or (test == "wilcoxon" and tests.least_wilcoxon * compared > LEVEL):
            word = TOO_FEW
        elif p_value <= LEVEL and mean != 0:
            word = BETTER if (mean > 0) != lower else WORSE
        else:
            word = UNTOLD
        judged.append(Judged(tests, float(adjusted["t"][index]), float(adjusted["wilcoxon"][index]), word))
    return judged


def too_few(family: Sequence[PairedTests], test: TestName = "t") -> str:
    """Why none of these comparisons can tell anything, as a sentence; empty where one can."""
    known = [one for one in family if one.seeds]
    if not known:
        return "No two of them share a seed, so nothing can be compared."
    most = max(one.seeds for one in known)
    if most < FEW_SEEDS:
        return f"{_seeds(most)} {'is' if most == 1 else 'are'} too few to tell two mechanisms apart; it takes three."
    least = 2.0 ** (1 - most)
    if test == "t" or least * len(known) <= LEVEL:
        return ""
    floor = f"Wilcoxon on {_seeds(most)} cannot go below p = {least:.4g}"
    times = f", and there are {len(known)} comparisons to correct for" if least <= LEVEL else ""
    return f"Too few seeds to tell: {floor}{times}."


def _seeds(count: int) -> str:
    return f"{count} seed{'s' * (count != 1)}"
