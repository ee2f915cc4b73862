"""The difference of two models on the same images: paired by image, and by seed where there are several.

Never imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from kattn_cli.tables.statistics import Z95, mean_interval

FEW_SEEDS = 3
"""Fewer seeds than this cannot tell two mechanisms apart."""


@dataclass(frozen=True)
class Difference:
    """The second's accuracy less the first's, in points, with a 95 % interval and a two-sided p-value.

    Over several seeds, the interval and the p-value are Student's, of the per-seed differences: they hold for other
    seeds on these images. For a single seed, the interval is Agresti and Min's (2005) and the p-value McNemar's
    exact one: they hold for other images with these weights, and say nothing of other trainings.
    """

    points: float
    low: float
    high: float
    p_value: float
    seeds: int
    images: int

    @property
    def verdict(self) -> str:
        """``higher``, ``lower``, ``no difference shown``, or ``too few seeds to tell``."""
        if self.seeds < FEW_SEEDS:
            return "too few seeds to tell"
        if not (self.low > 0 or self.high < 0):
            return "no difference shown"
        return "higher" if self.points > 0 else "lower"


def paired_difference(
    first: Mapping[int, NDArray[np.integer]], second: Mapping[int, NDArray[np.integer]]
) -> Difference | None:
    """Compare over the seeds that both have; None where they share no seed, or not the same number of images.

    Args:
        first, second: seed → whether each image is classified rightly, ``(n,)`` of 0 and 1, in the same order.
    """
    seeds = sorted(set(first) & set(second))
    sizes = {len(part) for seed in seeds for part in (first[seed], second[seed])}
    if len(sizes) != 1 or sizes == {0}:
        return None
    (images,) = sizes
    gains = [np.asarray(second[seed], float) - np.asarray(first[seed], float) for seed in seeds]
    means = [100 * float(gain.mean()) for gain in gains]
    if len(seeds) == 1:
        mean, (low, high), p_value = means[0], _agresti_min(gains[0]), _mcnemar(gains[0])
    else:
        mean, half = mean_interval(means)
        low, high = mean - half, mean + half
        constant = max(means) == min(means)
        p_value = float(mean == 0) if constant else float(stats.ttest_1samp(means, 0).pvalue)
    return Difference(mean, low, high, p_value, len(seeds), images)


def _mcnemar(gain: NDArray[np.floating]) -> float:
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    return float(stats.binomtest(better, better + worse, 0.5).pvalue) if better + worse else 1.0


def _agresti_min(gain: NDArray[np.floating]) -> tuple[float, float]:
    """Wald's interval of paired proportions after half an image is added to each of the four outcomes, in points."""
    better, worse, n = (gain > 0).sum() + 0.5, (gain < 0).sum() + 0.5, len(gain) + 2
    centre = (better - worse) / n
    half = Z95 * math.sqrt(better + worse - (better - worse) ** 2 / n) / n
    return 100 * float(centre - half), 100 * float(centre + half)
