"""Intervals and other statistics of measurements. Never imports torch, since figures use it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
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


def expected_calibration_error(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer], bins: int = 15
) -> float:
    """Return the mean distance of confidence from accuracy over equal bins of confidence (Guo et al., 2017).

    ``probabilities``: ``(n, classes)``; ``labels``: ``(n,)``; returns a share of 1, nan where one is not a number.
    """
    if not np.isfinite(probabilities).all():
        return math.nan
    confidence = probabilities.max(-1).astype(float)
    correct = probabilities.argmax(-1) == labels
    index = np.clip(np.ceil(confidence * bins), 1, bins).astype(int) - 1
    gap = np.bincount(index, weights=confidence - correct, minlength=bins)
    return float(np.abs(gap).sum() / len(labels))


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


def aupr(positives: NDArray[np.floating], negatives: NDArray[np.floating]) -> float:
    """Return the area under the precision-recall curve of scores that are high for positives; a share of 1.

    Average precision, Σ (Rₙ − Rₙ₋₁) Pₙ over falling thresholds, without interpolation. Scores without skill come to
    the share of positives. ``positives``: ``(n,)``; ``negatives``: ``(m,)``; nan where either is empty or one is not a
    number.
    """
    scores = np.concatenate([positives, negatives])
    if not (len(positives) and len(negatives) and np.isfinite(scores).all()):
        return math.nan
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(np.arange(len(scores)) < len(positives), scores))
