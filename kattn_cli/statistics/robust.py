"""Ranks, for numbers of seeds with a heavy tail: a mean of −2.4, −2.5, −2.2, 76 and 1721 means nothing.

The estimate is Hodges and Lehmann's (1963), the median of all means of two; its interval and p-values are those of
Wilcoxon's signed-rank test, exact, with ties. They hold for numbers that are symmetric about their centre, whatever
their tails. Ranks of fewer than six seeds tell nothing at 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from kattn_cli.statistics.effect import NONE, Effect
from kattn_cli.statistics.power import FEW_SEEDS, LEVEL, POWER

HEAVY = 20
"""A number this many median deviations from the median is of a heavy tail; at most 2 % of normal samples have one."""
_DRAWS = 500
_MOST_SEEDS = 200


def heavy(values: ArrayLike) -> bool:
    """Return whether one of at least four numbers lies more than :data:`HEAVY` median deviations from the median.

    Then ranks are to judge them. Three numbers cannot tell a tail, nor ranks of three anything.
    """
    numbers = np.asarray(values, dtype=float)
    if len(numbers) < 4:
        return False
    deviations = np.abs(numbers - np.median(numbers))
    return bool(deviations.max() > HEAVY * np.median(deviations) > 0)


def ranks(by_seed: Mapping[int, float]) -> RankEffect:
    """Return the effect of numbers of seeds by their signed ranks."""
    known = tuple(value for value in by_seed.values() if math.isfinite(value))
    count, missing = len(known), len(by_seed) - len(known)
    least = 2.0 ** (1 - count)
    nothing = "" if least <= LEVEL else f"signed ranks of {count} seeds cannot go below p = {least:.3g}"
    estimate = float(np.median(_means_of_two(known))) if known else math.nan
    return RankEffect(estimate, count, 0, "signed ranks", missing, nothing if known else NONE, values=known)


@dataclass(frozen=True)
class RankEffect(Effect):
    """The centre of ``values`` by Wilcoxon's signed ranks."""

    values: tuple[float, ...] = ()

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        means = _means_of_two(self.values)
        of_ranks = _cumulative(_plain(len(self.values)))[::2]
        outside = int(np.searchsorted(of_ranks, (1 - level) / 2, side="right"))
        if not outside:
            return math.nan, math.nan
        return float(means[outside - 1]), float(means[-outside])

    def p_above(self, bound: float) -> float:
        return self._p_value(np.asarray(self.values) - bound)

    def p_below(self, bound: float) -> float:
        return self._p_value(bound - np.asarray(self.values))

    def _p_value(self, beyond: NDArray[np.floating]) -> float:
        """Return how often chance gives signed ranks as positive as those; zeros are left out of them."""
        if math.isnan(self.estimate):
            return math.nan
        beyond = beyond[beyond != 0]
        doubled = tuple(np.sort(np.rint(2 * rankdata(np.abs(beyond))).astype(int)).tolist())
        positive = int(np.rint(2 * rankdata(np.abs(beyond))[beyond > 0].sum()))
        return float(1 - (_cumulative(doubled)[positive - 1] if positive else 0.0))

    def power(self, effect: float, level: float = LEVEL) -> float:
        return self._seen(effect, len(self.values), level) if self.values else math.nan

    def smallest(self, level: float = LEVEL, of: float = POWER) -> float:
        count = len(self.values)
        scale = float(np.median(np.abs(self._left))) if count else 0.0
        if not scale or self._seen(math.inf, count, level) < of:
            return math.nan
        low, high = 0.0, scale
        while self._seen(high, count, level) < of:
            high *= 2
        while high - low > 0.01 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._seen(middle, count, level) >= of else (middle, high)
        return high

    def seeds_for(self, effect: float, level: float = LEVEL, of: float = POWER) -> int | None:
        if not len(self.values):
            return None
        counts = [count for count in range(FEW_SEEDS, _MOST_SEEDS + 1) if 2.0 ** (1 - count) <= level]
        while len(counts) > 1:
            middle = len(counts) // 2
            counts = counts[:middle] if self._seen(effect, counts[middle - 1], level) >= of else counts[middle:]
        return counts[0] if self._seen(effect, counts[0], level) >= of else None

    @cached_property
    def _left(self) -> NDArray[np.floating]:
        return np.asarray(self.values) - self.estimate

    def _seen(self, effect: float, seeds: int, level: float) -> float:
        """Return how often so many seeds tell this effect, drawn from what the estimate leaves, with either sign."""
        draw = np.random.default_rng(0)
        noise = draw.choice(self._left, (_DRAWS, seeds)) * draw.choice([-1, 1], (_DRAWS, seeds))
        numbers = noise + effect if math.isfinite(effect) else np.ones((_DRAWS, seeds))
        doubled = 2 * rankdata(np.abs(numbers), axis=1)
        positive = np.rint(np.where(numbers > 0, doubled, 0).sum(1)).astype(int)
        chance = 1 - np.concatenate([[0.0], _cumulative(_plain(seeds))])[positive]
        return float((2 * chance <= level).mean())


def _plain(count: int) -> tuple[int, ...]:
    """Return twice the ranks of so many numbers without ties."""
    return tuple(range(2, 2 * count + 1, 2))


def _means_of_two(values: Sequence[float]) -> NDArray[np.floating]:
    """Return the means of all pairs, each number with itself among them, in order: Walsh averages."""
    numbers = np.asarray(values, dtype=float)
    first, second = np.triu_indices(len(numbers))
    return np.sort((numbers[first] + numbers[second]) / 2)


@cache
def _cumulative(ranks: tuple[int, ...]) -> NDArray[np.floating]:
    """Return how often the ranks that random signs make positive sum up to at most 0, 1, 2, …"""
    chances = np.ones(1)
    for rank in ranks:
        longer = np.zeros(len(chances) + rank)
        longer[: len(chances)] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return np.cumsum(chances)
