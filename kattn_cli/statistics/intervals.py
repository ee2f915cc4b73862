"""Intervals of shares, means and medians, and of the exponent of a power law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

Z95 = 1.959963984540054


def wilson_interval(successes: float, trials: int, z: float = Z95) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion, as shares of 1 (95 % by default)."""
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return the mean and the half width of its Student-t interval; nan for the width of a single value."""
    data = np.asarray(values, dtype=float)
    if data.size < 2:
        return float(data.mean()), math.nan
    quantile = stdtrit(data.size - 1, (1 + level) / 2)
    return float(data.mean()), float(quantile * data.std(ddof=1) / math.sqrt(data.size))


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median with the 95 % interval of order statistics; nan where the values are too few for one."""
    from scipy.stats import quantile_test

    low, high = quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
    return float(np.median(values)), float(low), float(high)


class Exponent(NamedTuple):
    """The slope of ``log value`` over ``log size`` and its interval."""

    value: float
    low: float
    high: float


def power_law(sizes: Sequence[float], values: Sequence[float], level: float = 0.95) -> Exponent:
    """Return the exponent of ``value ∝ sizeᵃ`` by least squares of the logarithms, with its Student-t interval.

    All nan for fewer than two sizes, or where a value is not above 0; nan for the interval of two.
    """
    x, y = (np.asarray(one, dtype=float) for one in (sizes, values))
    if len(np.unique(x)) < 2 or not (y > 0).all():
        return Exponent(math.nan, math.nan, math.nan)
    if len(x) < 3:
        slope = float(np.polyfit(np.log(x), np.log(y), 1)[0])
        return Exponent(slope, math.nan, math.nan)
    line, covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    half = float(stdtrit(len(x) - 2, (1 + level) / 2) * math.sqrt(covariance[0, 0]))
    return Exponent(float(line[0]), float(line[0]) - half, float(line[0]) + half)
