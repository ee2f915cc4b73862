"""Bits of seeds and images: whether an image was right, seeds and images both random and crossed.

An image that is hard is hard for all seeds, so images are not independent over seeds, nor seeds over images. Radiology
knows the design as many readers and many cases (Obuchowski and Rockette, 1995). :func:`crossed` is the model that
decides; :func:`pigeonhole` resamples both and checks it, as a mixed logistic model does in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from kattn_cli.statistics.effect import NONE, ONE, SAME, Effect
from kattn_cli.statistics.power import (
    LEVEL,
    POWER,
    Components,
    half_width,
    images_needed,
    seeds_needed,
    smallest_effect,
    standard_errors,
    tail,
)

Bits = Mapping[int, NDArray[np.bool_] | NDArray[np.floating]]
"""Seed → whether each image was right, ``(images,)``, of all seeds in the same order; or, of several conditions, in
which share of them.
"""
FLOOR = "both are right on {share:.0f} % of all images, so nothing is left to compare"
IDENTICAL = "both are right on the very same images with every seed, as one mechanism under two names is"


def crossed(first: Bits, second: Bits) -> Effect:
    """Return the first's accuracy less the second's in points, over the seeds that both have.

    The paired differences are a two-way table of seeds and images, both random. The mean's variance is estimated by
    ``(MS_seeds + max(MS_images − MS_both, 0)) / (seeds × images)``, as radiology does (Hillis, 2007). What is uncertain
    of it is ``MS_seeds``, of few degrees of freedom. Whatever it is found to be, its expectation is at least that of
    ``MS_both``: the images alone make seeds vary so much, however equal a few of them are. So its confidence
    distribution, ``MS_seeds × (seeds − 1) / χ²``, is cut there, and p-values are averages over it. Where images vary
    nothing, that is Student's test of the seeds' means. One seed has :class:`OneSeed`.

    Raises:
        ValueError: if the images are not as many for all seeds of both.
    """
    seeds, gains, room, nothing = _gains(first, second)
    model = "crossed seeds × images"
    if not seeds:
        return CrossedEffect(math.nan, 0, 0, model, nothing=NONE)
    count, images = gains.shape
    estimate = float(gains.mean())
    if count == 1:
        better, worse = int((gains > 0).sum()), int((gains < 0).sum())
        return OneSeed(estimate, 1, images, "these weights alone", 0, nothing or ONE, room, better, worse)
    of_seeds, of_images, both = _mean_squares(gains)
    of_images = max(of_images - both, 0.0)
    if nothing or not max(of_seeds, both) > 0:
        return CrossedEffect(estimate, count, images, model, 0, nothing or SAME, room)
    cells = count * images
    errors = standard_errors(of_seeds / cells, count, both / cells, of_images / cells)
    components = Components(max(of_seeds - both, 0.0) / images, of_images / count, both)
    return CrossedEffect(estimate, count, images, model, 0, "", room, errors, components)


def pigeonhole(first: Bits, second: Bits, draws: int = 2000, seed: int = 0) -> DrawnEffect:
    """Return the same by a bootstrap that draws seeds and images, each with replacement (Owen, 2007).

    It takes no distribution for granted, but few seeds: of three there are ten draws.

    Raises:
        ValueError: if the images are not as many for all seeds of both.
    """
    seeds, gains, room, nothing = _gains(first, second)
    model = "pigeonhole bootstrap of seeds and images"
    if not seeds:
        return DrawnEffect(math.nan, 0, 0, model, nothing=NONE)
    random = np.random.default_rng(seed)
    count, images = gains.shape
    means = np.empty(draws)
    for draw in range(draws):
        of_images = np.bincount(random.integers(images, size=images), minlength=images)
        means[draw] = (gains @ of_images)[random.integers(count, size=count)].mean() / images
    return DrawnEffect(float(gains.mean()), count, images, model, 0, nothing, room, means)


def _gains(first: Bits, second: Bits) -> tuple[list[int], NDArray[np.floating], float, str]:
    """Return the shared seeds, differences ``(seeds, images)`` in points, the room, and why they tell nothing."""
    seeds = sorted(set(first) & set(second))
    if not seeds:
        return seeds, np.empty((0, 0)), math.inf, NONE
    sizes = {len(part[seed]) for seed in seeds for part in (first, second)}
    if len(sizes) != 1:
        raise ValueError(f"seeds of {sorted(sizes)} images cannot be compared image by image")
    ours, theirs = (100 * np.stack([part[seed] for seed in seeds]).astype(float) for part in (first, second))
    low, high = sorted((float(ours.mean()), float(theirs.mean())))
    room = min(high, 100 - low)
    nothing = FLOOR.format(share=low) if room == 0 else IDENTICAL if np.array_equal(ours, theirs) else ""
    return seeds, ours - theirs, room, nothing


def _mean_squares(gains: NDArray[np.floating]) -> tuple[float, float, float]:
    """Return those between seeds, between images, and of what both leave."""
    count, images = gains.shape
    of_seeds, of_images = gains.mean(1, keepdims=True), gains.mean(0)
    left = gains - of_seeds - of_images + gains.mean()
    both = float((left**2).sum()) / ((count - 1) * max(images - 1, 1))
    return images * float(of_seeds.var(ddof=1)), count * float(of_images.var(ddof=1)), both


@dataclass(frozen=True)
class CrossedEffect(Effect):
    """An effect of several seeds and images.

    Attributes:
        errors: its possible standard errors, see :func:`~kattn_cli.statistics.power.standard_errors`.
        components: what varies, for other numbers of seeds and images; None where the effect tells nothing.
    """

    errors: NDArray[np.floating] = field(default_factory=lambda: np.empty(0), compare=False, repr=False)
    components: Components | None = None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        if self.components is None:
            return math.nan, math.nan
        half = float(half_width(self.errors, 1 - level))
        return self.estimate - half, self.estimate + half

    def p_above(self, bound: float) -> float:
        return self._p_value(self.estimate - bound)

    def p_below(self, bound: float) -> float:
        return self._p_value(bound - self.estimate)

    def _p_value(self, distance: float) -> float:
        if math.isnan(self.estimate):
            return math.nan
        return float(tail(distance, self.errors)) if self.components else 1.0

    def power(self, effect: float, level: float = LEVEL) -> float:
        return self.components.power(effect, self.seeds, self.images, level) if self.components else math.nan

    def smallest(self, level: float = LEVEL, of: float = POWER) -> float:
        return smallest_effect(self.components, self.seeds, self.images, level, of) if self.components else math.nan

    def seeds_for(self, effect: float, level: float = LEVEL, of: float = POWER) -> int | None:
        return seeds_needed(self.components, effect, self.images, level, of) if self.components else None

    def images_for(self, effect: float, level: float = LEVEL, of: float = POWER) -> int | None:
        return images_needed(self.components, effect, self.seeds, level, of) if self.components else None


@dataclass(frozen=True)
class OneSeed(Effect):
    """The difference of one pair of weights, which holds for other images and says nothing of other seeds.

    The p-values against 0 are McNemar's exact ones; the interval, and p-values against other bounds, are Agresti and
    Min's (2005).

    Attributes:
        better, worse: how many images only the first is right on, and only the second.
    """

    better: int = 0
    worse: int = 0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        centre, error = self._wald
        half = float(special.ndtri((1 + level) / 2)) * error
        return centre - half, centre + half

    def p_above(self, bound: float) -> float:
        return self._p_value(bound, 1)

    def p_below(self, bound: float) -> float:
        return self._p_value(bound, -1)

    def _p_value(self, bound: float, side: int) -> float:
        if bound == 0:
            apart, for_it = self.better + self.worse, self.better if side > 0 else self.worse
            return float(stats.binomtest(for_it, apart, 0.5, alternative="greater").pvalue) if apart else 1.0
        centre, error = self._wald
        return float(special.ndtr(side * (bound - centre) / error))

    @property
    def _wald(self) -> tuple[float, float]:
        """Return the centre and standard error, in points, with half an image added to each of four outcomes."""
        better, worse, images = self.better + 0.5, self.worse + 0.5, self.images + 2
        centre = (better - worse) / images
        error = math.sqrt(better + worse - (better - worse) ** 2 / images) / images
        return 100 * centre, 100 * error


@dataclass(frozen=True)
class DrawnEffect(Effect):
    """An effect by the percentiles of its bootstrap draws."""

    draws: NDArray[np.floating] = field(default_factory=lambda: np.empty(0), compare=False, repr=False)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        if self.nothing:
            return math.nan, math.nan
        low, high = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def p_above(self, bound: float) -> float:
        return self._p_value(bound, 1)

    def p_below(self, bound: float) -> float:
        return self._p_value(bound, -1)

    def _p_value(self, bound: float, side: int) -> float:
        if self.nothing:
            return math.nan if math.isnan(self.estimate) else 1.0
        beyond = int((side * self.draws <= side * bound).sum())
        return (beyond + 1) / (len(self.draws) + 1)
