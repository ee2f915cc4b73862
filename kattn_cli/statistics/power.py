"""Power: which effect a comparison can see, and how many seeds and images it takes to see one.

What varies is a seed (its draw of weights, order and augmentation together), an image, and a seed on an image; see
Bouthillier et al. (2021) for what else does. The test is two-sided unless said otherwise, by Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

LEVEL = 0.05
POWER = 0.8
FEW_SEEDS = 3
"""Fewer seeds than this decide nothing about other seeds."""
MOST_SEEDS = 10_000
MOST_IMAGES = 100_000_000
_SHARES = (np.arange(1000) + 0.5) / 1000
_ROOTS = (np.arange(200) + 0.5) / 200
_TAIL = _ROOTS**3
_WEIGHTS = _ROOTS**2 / (_ROOTS**2).sum()
"""Shares of a distribution that lie dense where it begins, and their weights: a few seeds' variance may be near 0."""


@dataclass(frozen=True)
class Components:
    """Variances of the paired difference of two mechanisms, in the measure's unit squared.

    Attributes:
        seed: of a seed's difference over all images that there are.
        image: of an image's difference over all seeds; 0 of a measure that is not of images.
        both: of a seed on an image, beyond both.
        pooled: how many times the degrees of freedom that a pair's own differences have, which are the seeds less one:
            more than 1 where the variance is pooled over several comparisons of the same seeds.
    """

    seed: float
    image: float = 0.0
    both: float = 0.0
    pooled: float = 1.0

    def standard_error(self, seeds: int, images: int = 0) -> float:
        """Return the standard error of the mean difference over so many seeds and images."""
        return math.sqrt(sum(self._parts(seeds, images)))

    def power(self, effect: float, seeds: int, images: int = 0, level: float = LEVEL) -> float:
        """Return how often the mean difference over so many seeds and images tells an effect of this size from 0.

        It averages over what the variance between seeds is found to be.
        """
        if not images:
            return power(effect, self.standard_error(seeds), self.pooled * (seeds - 1), level)
        beyond = _beyond(self, seeds, images, level)
        error = self.standard_error(seeds, images)
        told = special.ndtr((abs(effect) - beyond) / error) + special.ndtr((-abs(effect) - beyond) / error)
        return float(told @ _WEIGHTS)

    def _parts(self, seeds: int, images: int) -> tuple[float, float]:
        """Return the variance of the mean by what is estimated between seeds, and by what is left of images."""
        if not images:
            return self.seed / seeds, 0.0
        return (self.seed + self.both / images) / seeds, self.image / images


def standard_errors(of_seeds: ArrayLike, seeds: int, least: float, of_images: float) -> NDArray[np.floating]:
    """Return those that a mean may have, ``(…, 200)``, with weights :data:`_WEIGHTS`: its confidence distribution.

    Args:
        of_seeds: the variance that ``seeds`` seeds give the mean, as it is found, ``(…)``.
        least: below which it cannot lie, since images alone make seeds vary so much.
        of_images: the variance that images give it.
    """
    possible = np.asarray(of_seeds)[..., None] * (seeds - 1) / special.chdtri(seeds - 1, 1 - _TAIL)
    return np.sqrt(np.maximum(possible, least) + of_images)


def tail(distance: ArrayLike, errors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return how often a mean with such :func:`standard_errors` lies so far, or farther, above what it estimates."""
    return special.ndtr(-np.asarray(distance)[..., None] / errors) @ _WEIGHTS


def half_width(errors: NDArray[np.floating], level: float) -> NDArray[np.floating]:
    """Return how far a mean with such :func:`standard_errors`, ``(…, 200)``, errs so often, on two sides."""
    low, high = np.zeros(errors.shape[:-1]), errors.max(-1) * special.ndtri(1 - level / 2)
    for _ in range(50):
        middle = (low + high) / 2
        inside = tail(middle, errors) > level / 2
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


@lru_cache(maxsize=64)
def _beyond(components: Components, seeds: int, images: int, level: float) -> NDArray[np.floating]:
    """Return how far from 0 the mean must lie to be told from it, by the quantiles of the variance that is found."""
    of_seeds, of_images = components._parts(seeds, images)
    found = of_seeds * special.chdtri(seeds - 1, 1 - _TAIL) / (seeds - 1)
    return half_width(standard_errors(found, seeds, components.both / images / seeds, of_images), level)


def power(effect: float, standard_error: float, df: float, level: float = LEVEL) -> float:
    """Return how often a two-sided t test at ``level`` tells an effect of this size from 0."""
    if not df > 0 or math.isnan(standard_error):
        return math.nan
    if standard_error == 0:
        return 1.0 if effect else level
    shift, quantile = abs(effect) / standard_error, float(special.stdtrit(df, 1 - level / 2))
    below, above = special.nctdtr(df, shift, [-quantile, quantile])
    return float(np.nan_to_num(below) + 1 - np.nan_to_num(above))  # nan where it is less than a double can hold


def equivalence_power(
    margin: float, standard_error: float, df: float, level: float = LEVEL, effect: float = 0.0
) -> float:
    """Return how often two one-sided tests show that an effect of this size is within the margin."""
    if not df > 0 or math.isnan(standard_error):
        return math.nan
    spread = np.sqrt(special.chdtri(df, 1 - _SHARES) / df) * float(special.stdtrit(df, 1 - level))
    low, high = ((side * margin - effect) / standard_error for side in (-1, 1))
    return float(np.maximum(special.ndtr(high - spread) - special.ndtr(low + spread), 0).mean())


def smallest_effect(
    components: Components, seeds: int, images: int = 0, level: float = LEVEL, of: float = POWER
) -> float:
    """Return the smallest effect that so many seeds and images tell from 0 with power ``of``."""
    unit = components.standard_error(seeds, images)
    most = 2.0
    while components.power(most * unit, seeds, images, level) < of:
        most *= 2
    found = optimize.brentq(lambda size: components.power(size * unit, seeds, images, level) - of, 0, most, rtol=1e-6)
    return unit * float(found)


def seeds_needed(
    components: Components, effect: float, images: int = 0, level: float = LEVEL, of: float = POWER
) -> int | None:
    """Return how many seeds tell an effect of this size from 0 with power ``of``, on so many images.

    None where no number of seeds does, since the images are too few.
    """

    def enough(seeds: int) -> bool:
        return components.power(effect, seeds, images, level) >= of

    return _least(enough, FEW_SEEDS, MOST_SEEDS)


def images_needed(
    components: Components, effect: float, seeds: int, level: float = LEVEL, of: float = POWER
) -> int | None:
    """Return how many images tell an effect of this size from 0 with power ``of``, over so many seeds.

    None where no number of images does, since the seeds are too few.
    """

    def enough(images: int) -> bool:
        return components.power(effect, seeds, images, level) >= of

    return _least(enough, 2, MOST_IMAGES)


def _least(enough: Callable[[int], bool], least: int, most: int) -> int | None:
    """Return the least number that is enough, by bisection; None where ``most`` is not."""
    if enough(least):
        return least
    if not enough(most):
        return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most
