"""Numbers of seeds: mechanism + seed, with the variance of what is left pooled over the mechanisms compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kattn_cli.statistics.effect import ONE, SAME, StudentEffect
from kattn_cli.statistics.power import Components

BySeed = Mapping[int, float]
ROUNDING = 1e-9
"""Differences that vary by less than this share of themselves do not vary: 0.01 points of accuracies near 100 are
known to 1e-12 of themselves."""


def compare(values: Mapping[str, BySeed], pairs: Sequence[tuple[str, str]]) -> list[StudentEffect]:
    """Return the first less the second of each pair of arms, over the seeds that both have.

    The residual variance of ``value = arm + seed`` is pooled over the arms of the pairs, so that no comparison is
    rewarded for a low spread of its few seeds.

    Args:
        values: arm → seed → value.
    """
    arms = list(dict.fromkeys(arm for pair in pairs for arm in pair))
    variance, df = _residual({arm: values.get(arm, {}) for arm in arms})
    effects = []
    for first, second in pairs:
        ours, theirs = values.get(first, {}), values.get(second, {})
        difference = {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}
        effects.append(_student(difference, 2 * variance, df, "mechanism + seed, pooled"))
    return effects


def one_sample(values: BySeed) -> StudentEffect:
    """Return the mean of numbers of seeds, to be held against any bound."""
    known = np.asarray([value for value in values.values() if math.isfinite(value)])
    spread = float(known.std(ddof=1)) if len(known) > 1 else math.nan
    vary = spread > ROUNDING * np.abs(known).max() if len(known) > 1 else False
    return _student(values, spread**2 if vary else math.nan, len(known) - 1, "seeds, by Student's t")


def _student(by_seed: BySeed, variance: float, df: float, model: str) -> StudentEffect:
    """Return the effect of numbers of seeds that vary by so much."""
    known = [value for value in by_seed.values() if math.isfinite(value)]
    estimate = float(np.mean(known)) if known else math.nan
    count, missing = len(known), len(by_seed) - len(known)
    if not known:
        return StudentEffect(estimate, 0, 0, model, missing, "no seed has both")
    if not (variance > 0 and df > 0):
        return StudentEffect(estimate, count, 0, model, missing, SAME if count > 1 else ONE)
    components = Components(variance, pooled=df / (count - 1) if count > 1 else 1.0)
    return StudentEffect(
        estimate,
        count,
        model=model,
        missing=missing,
        standard_error=math.sqrt(variance / count),
        df=df,
        components=components,
    )


def _residual(values: Mapping[str, BySeed]) -> tuple[float, float]:
    """Return the variance of what arm and seed leave, by least squares over the cells that are there, and its df."""
    cells = [(arm, seed, value) for arm, row in values.items() for seed, value in row.items() if math.isfinite(value)]
    if not cells:
        return math.nan, 0
    arms, seeds = (list(dict.fromkeys(cell[axis] for cell in cells)) for axis in (0, 1))
    design = np.zeros((len(cells), len(arms) + len(seeds)))
    for row, (arm, seed, _) in enumerate(cells):
        design[row, [arms.index(arm), len(arms) + seeds.index(seed)]] = 1
    numbers = np.asarray([cell[2] for cell in cells])
    fitted, _, rank, _ = np.linalg.lstsq(design, numbers, rcond=None)
    df = len(cells) - int(rank)
    squares = float(((numbers - design @ fitted) ** 2).sum())
    if df < 1 or squares <= (ROUNDING * np.abs(numbers).max()) ** 2:
        return math.nan, df
    return squares / df, df
