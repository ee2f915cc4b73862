"""The paired comparison of two mechanisms: one test, one vocabulary of verdicts, Holm's correction for many.

Of a comparison the first is ``better`` or ``worse`` than the second, or they are ``not told apart``; fewer than three
seeds are ``too few seeds to tell``. Whether a claim of a paper holds is another matter:
:class:`~kattn_cli.papers.claim.Verdict`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
from scipy import special, stats

from kattn_cli.statistics.multiplicity import holm
from kattn_cli.tables.statistics import mean_interval

LEVEL = 0.05
"""How often one of all comparisons may be told apart where nothing differs."""
FEW_SEEDS = 3
"""Fewer seeds than this cannot tell two mechanisms apart."""
TestName = Literal["t", "wilcoxon"]
BETTER, WORSE, UNDECIDED, TOO_FEW = "better", "worse", "not told apart", "too few seeds to tell"
_TIES_COUNTED = 13
"""Up to so many seeds the signs of tied differences are gone through one by one."""
_ROUNDING = 1e-9
"""Differences that vary by less than this share of themselves do not vary: 0.01 points of accuracies near 100 are
known to 1e-12 of themselves."""


def verdict(mean: float, seeds: int, apart: bool, lower_is_better: bool = False) -> str:
    """Return the word for a mean difference of so many seeds, of which a test says whether it is not 0.

    Args:
        apart: whether the test tells the two apart.
    """
    if seeds < FEW_SEEDS:
        return TOO_FEW
    if not apart or mean == 0:
        return UNDECIDED
    return BETTER if (mean > 0) != lower_is_better else WORSE


@dataclass(frozen=True)
class Paired:
    """``differences``: the first's value less the second's, one for each seed that both have."""

    differences: tuple[float, ...]

    @property
    def seeds(self) -> int:
        return len(self.differences)

    @cached_property
    def vary(self) -> bool:
        """Whether the differences of at least two seeds differ, beyond rounding."""
        differences = np.asarray(self.differences)
        return self.seeds > 1 and bool(differences.std(ddof=1) > _ROUNDING * np.abs(differences).max())

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The mean difference, and the half width of its 95 % Student-t interval.

        The width is nan of a single seed, and of differences that do not :attr:`vary`; see :attr:`t`.
        """
        if not self.differences:
            return math.nan, math.nan
        mean, half = mean_interval(self.differences)
        return mean, half if self.vary else math.nan

    @cached_property
    def t(self) -> float:
        """The two-sided p-value of the paired t-test; nan for fewer than two seeds.

        It is 1 of differences that do not :attr:`vary`. Accuracies are multiples of one image, so a few seeds often
        gain equally many; a spread of 0 is then not a variance of 0, and Student's test, which takes it for one, would
        be sure of anything. A p-value of 1 is valid whatever differs, and Holm's correction counts it.
        """
        if self.seeds < 2:
            return math.nan
        if not self.vary:
            return 1.0
        differences = np.asarray(self.differences)
        mean, spread = differences.mean(), differences.std(ddof=1)
        return float(2 * special.stdtr(self.seeds - 1, -abs(mean) * math.sqrt(self.seeds) / spread))

    @cached_property
    def wilcoxon(self) -> float:
        """The exact two-sided p-value of Wilcoxon's signed-rank test; seeds without a difference are left out of it.

        Ties share their mean rank; beyond 13 seeds with ties, it is scipy's normal approximation. Nan without seeds.
        """
        if not self.differences:
            return math.nan
        differences = np.asarray([one for one in self.differences if one != 0])
        ranks = stats.rankdata(np.abs(differences)) * np.sign(differences)
        return _wilcoxon(tuple(sorted(ranks, key=abs))) if len(differences) else 1.0

    @property
    def least_wilcoxon(self) -> float:
        """The least p-value that Wilcoxon's test can reach with so many seeds: 2^(1 − n), of 5 seeds 0.0625."""
        return 2.0 ** (1 - self.seeds) if self.seeds else math.nan

    def verdict(self, lower_is_better: bool = False) -> str:
        """Return the verdict by the 95 % interval of this comparison alone, which no other one corrects."""
        mean, half = self.interval
        return verdict(mean, self.seeds, abs(mean) > half, lower_is_better)


@cache
def _wilcoxon(ranks: tuple[float, ...]) -> float:
    """Return the p-value of signed ranks: of few seeds there are few of them."""
    ties = len({abs(one) for one in ranks}) < len(ranks)
    if not ties or len(ranks) > _TIES_COUNTED:
        return float(stats.wilcoxon(ranks, method="auto" if ties else "exact").pvalue)
    signed = (np.asarray(ranks),)
    return float(stats.permutation_test(signed, np.sum, permutation_type="samples", n_resamples=np.inf).pvalue)


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Paired:
    """Return the first less the second, over the seeds whose values are numbers in both.

    Args:
        first, second: seed → value.
    """
    pairs = [(first[seed], second[seed]) for seed in sorted(first) if seed in second]
    return Paired(tuple(one - other for one, other in pairs if math.isfinite(one - other)))


@dataclass(frozen=True)
class Judged:
    """One comparison of a family with its p-values after Holm, and the verdict by the test that was asked for."""

    paired: Paired
    t: float
    wilcoxon: float
    verdict: str


def judge(
    family: Sequence[Paired], lower_is_better: Sequence[bool] | None = None, test: TestName = "t"
) -> list[Judged]:
    """Return the comparisons of a family, each with its verdict; one without a shared seed does not count among them.

    Seeds are too few to tell where there are fewer than three; with Wilcoxon's test also where the least p-value that
    it can reach, times the number of comparisons, is above 0.05.
    """
    adjusted = {name: holm([getattr(one, name) for one in family]) for name in ("t", "wilcoxon")}
    compared = int(np.isfinite(adjusted["wilcoxon"]).sum())
    judged = []
    for index, (one, lower) in enumerate(zip(family, lower_is_better or [False] * len(family), strict=True)):
        p_t, p_wilcoxon = (float(adjusted[name][index]) for name in ("t", "wilcoxon"))
        word = verdict(one.interval[0], one.seeds, (p_t if test == "t" else p_wilcoxon) <= LEVEL, lower)
        if test == "wilcoxon" and one.least_wilcoxon * compared > LEVEL:
            word = TOO_FEW
        judged.append(Judged(one, p_t, p_wilcoxon, word))
    return judged


def too_few(family: Iterable[Paired], test: TestName = "t") -> str:
    """Return why none of these comparisons can tell anything, as a sentence; nothing where one can."""
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
