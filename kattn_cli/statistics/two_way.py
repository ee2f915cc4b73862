"""Numbers of seeds: mechanism + seed, with the variance of what is left pooled over the mechanisms compared.

Three seeds say little of their own variance: by chance it is small, and Student's test is sure of anything. So it is
pooled over the arms that are compared; where a test tells the arms' variances apart it is moderated, a mean of the
pooled variance and the comparison's own with weights that their spread gives (Smyth, 2004). A comparison whose own
variance is above that is judged by its own: pooled with seven quieter arms, one that is three times as noisy would be
told wrongly in one case of five (``tests/simulations.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from kattn_cli.statistics.effect import NONE, ONE, SAME, Effect, StudentEffect
from kattn_cli.statistics.power import Components
from kattn_cli.statistics.robust import heavy, ranks

BySeed = Mapping[int, float]
ROUNDING = 1e-9
"""Differences that vary by less than this share of themselves do not vary: 0.01 points of accuracies near 100 are
known to 1e-12 of themselves."""
UNEQUAL = 0.1
POOLED, MODERATED, OWN = "pooled variance", "moderated variance", "its own variance"


@dataclass(frozen=True)
class Spread:
    """The variance of a difference of two arms, as all arms that are compared have it.

    Attributes:
        variance: nan where nothing varies.
        df: its degrees of freedom.
        prior: how many of them count beside a comparison's own, as far as the arms' variances differ; infinite where
            they do not.
    """

    variance: float
    df: float
    prior: float = math.inf

    def beside(self, own: float, df: float) -> tuple[float, float, str]:
        """Return the variance of one comparison with its degrees of freedom, and which it is.

        Args:
            own: the variance of its own differences, of ``df`` degrees of freedom; nan where it has none.
        """
        if not own > 0 or self.df <= df:
            return self.variance, self.df, POOLED if self.df > df else OWN
        found = self.variance, self.df, POOLED
        if math.isfinite(self.prior):
            prior = min(self.prior, self.df - df)
            found = (prior * self.variance + df * own) / (prior + df), prior + df, MODERATED
        return (own, df, OWN) if own > found[0] else found


def compare(values: Mapping[str, BySeed], pairs: Sequence[tuple[str, str]]) -> list[Effect]:
    """Return the first less the second of each pair of arms, over the seeds that both have.

    Args:
        values: arm → seed → value. All arms that are in a pair share the seeds' effects and the variance that
            mechanism and seed leave; an arm may lack seeds.

    A pair whose differences have a heavy tail is judged by :func:`~kattn_cli.statistics.robust.ranks`.
    """
    arms = list(dict.fromkeys(arm for pair in pairs for arm in pair))
    spread = _of_arms({arm: values.get(arm, {}) for arm in arms})
    differences = []
    for first, second in pairs:
        ours, theirs = values.get(first, {}), values.get(second, {})
        differences.append({seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs})
    return [_effect(one, spread, "mechanism + seed") for one in differences]


def samples(family: Sequence[BySeed]) -> list[Effect]:
    """Return the mean of each sample of a family, to be held against any bound: of differences, ratios or logarithms.

    Their variances are pooled as those of arms in :func:`compare`; one with a heavy tail is judged by its ranks alone.

    Args:
        family: seed → value, of each sample.
    """
    known = [[value for value in one.values() if math.isfinite(value)] for one in family]
    own = [_variance(one) for one in known if not heavy(one)]
    varying = [(variance, df) for variance, df in own if variance > 0]
    df = sum(df for _, df in varying)
    pooled = sum(variance * df for variance, df in varying) / df if df else math.nan
    spread = Spread(pooled, df, prior_df(*zip(*varying, strict=True)) if varying else math.inf)
    return [_effect(one, spread, "mean over seeds") for one in family]


def one_sample(values: BySeed) -> Effect:
    """Return the mean of numbers of seeds, by these alone: Student's interval, or ranks."""
    return samples([values])[0]


def prior_df(variances: ArrayLike, dfs: ArrayLike) -> float:
    """Return the degrees of freedom of the distribution that variances come from (Smyth, 2004): ∞ of equal ones.

    It is fitted by the moments of their logarithms: of equal variances those spread by ``trigamma(df / 2)``. Variances
    count as equal where Bartlett's test at 0.1 does not tell them apart, since few of them fit badly.
    """
    variances, dfs = (np.asarray(one, dtype=float) for one in (variances, dfs))
    known = variances > 0
    variances, dfs = variances[known], dfs[known]
    if len(dfs) < 2 or _bartlett(variances, dfs) > UNEQUAL:
        return math.inf
    half = dfs / 2
    logs = np.log(variances) - special.digamma(half) + np.log(half)
    beyond = float(logs.var(ddof=1) - special.polygamma(1, half).mean())
    return 2 * _trigamma_inverse(beyond) if beyond > 0 else math.inf


def _bartlett(variances: NDArray[np.floating], dfs: NDArray[np.floating]) -> float:
    """Return the p-value of Bartlett's test that variances are equal."""
    total = dfs.sum()
    apart = total * math.log(float((dfs * variances).sum() / total)) - float((dfs * np.log(variances)).sum())
    correction = 1 + (float((1 / dfs).sum()) - 1 / total) / (3 * (len(dfs) - 1))
    return float(special.chdtrc(len(dfs) - 1, apart / correction))


def _trigamma_inverse(value: float) -> float:
    """Return the x whose trigamma function is ``value``, by Newton's method on its inverse (Smyth, 2004)."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x


def _variance(values: Sequence[float]) -> tuple[float, float]:
    """Return the variance with its degrees of freedom: nan of a single value, 0 of those that differ by rounding."""
    numbers = np.asarray(values, dtype=float)
    if len(numbers) < 2:
        return math.nan, 0
    spread = float(numbers.std(ddof=1))
    return (spread**2 if spread > ROUNDING * np.abs(numbers).max() else 0.0), len(numbers) - 1


def _effect(by_seed: BySeed, spread: Spread, model: str) -> Effect:
    known = [value for value in by_seed.values() if math.isfinite(value)]
    count, missing = len(known), len(by_seed) - len(known)
    if not known:
        return StudentEffect(math.nan, 0, 0, model, missing, NONE)
    if heavy(known):
        return ranks(by_seed)
    own, own_df = _variance(known)
    variance, df, words = spread.beside(own, own_df)
    estimate = float(np.mean(known))
    if not (variance > 0 and df > 0):
        return StudentEffect(estimate, count, 0, model, missing, SAME if count > 1 else ONE)
    return StudentEffect(
        estimate,
        count,
        model=f"{model}, {words}",
        missing=missing,
        standard_error=math.sqrt(variance / count),
        df=df,
        components=Components(variance, pooled=df / max(own_df, 1)),
    )


def _of_arms(values: Mapping[str, BySeed]) -> Spread:
    """Return twice the variance of what arm and seed leave, by least squares over the cells that are there."""
    cells = [(arm, seed, value) for arm, row in values.items() for seed, value in row.items() if math.isfinite(value)]
    if not cells:
        return Spread(math.nan, 0)
    arms, seeds = (list(dict.fromkeys(cell[axis] for cell in cells)) for axis in (0, 1))
    of_arm = np.asarray([arms.index(cell[0]) for cell in cells])
    of_seed = np.asarray([seeds.index(cell[1]) for cell in cells])
    design = np.zeros((len(cells), len(arms) + len(seeds)))
    design[np.arange(len(cells)), of_arm] = 1
    design[np.arange(len(cells)), len(arms) + of_seed] = 1
    numbers = np.asarray([cell[2] for cell in cells])
    left, df = _left_of(design, numbers)
    total = float(df.sum())
    if total < 0.5 or float((left**2).sum()) <= (ROUNDING * np.abs(numbers).max()) ** 2:
        return Spread(math.nan, 0)
    squares, dfs, count = (np.bincount(of_arm, weights=one) for one in (left**2, df, np.ones(len(cells))))
    free = dfs > 0.5 / len(cells)
    # Of two arms, both leave the same; one variance has no spread.
    prior = prior_df(squares[free] / dfs[free], count[free] - 1) if free.sum() > 2 else math.inf
    return Spread(2 * float(squares.sum()) / total, round(total), prior)


def _left_of(design: NDArray[np.floating], numbers: NDArray[np.floating]) -> tuple[NDArray[np.floating], ...]:
    """Return what least squares leave of each number, and the degrees of freedom that it adds; both ``(n,)``."""
    basis, values, _ = np.linalg.svd(design, full_matrices=False)
    basis = basis[:, values > 1e-10 * values[0]]
    return numbers - basis @ (basis.T @ numbers), 1 - (basis**2).sum(1)
