"""Solvers of kernel PCA with settings that just reach an accuracy, and what a solution costs.

A setting reaches the tolerance when :func:`~kattn_cli.kernel_pca.solvers.variance_gap` is at most that, in each of
several draws. Every iterative solver is tuned in the same way: it has three ladders of settings, each from the cheapest
to the most exact; of each ladder the first setting that reaches counts, and of the three the fastest. So the
randomised SVD gets, for each oversampling, its fewest power iterations; Lanczos, for each number of vectors, its
loosest tolerance; L-BFGS, for each memory, its loosest. Tuning knows the exact eigenvalues, and none of it is timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kattn_cli.kernel_pca.solvers import Array, Components, full, kernel_pca_dual, lanczos, randomised, variance_gap

Setting = Mapping[str, Any]
DUAL, DEFAULTS = "dual L-BFGS", "randomised SVD, defaults"
SOLVERS: dict[str, Callable[..., Components]] = {
    "full": full,
    "Lanczos": lanczos,
    "randomised SVD": randomised,
    DEFAULTS: randomised,
    DUAL: kernel_pca_dual,
}
"""In the order of the paper's table; scikit-learn's own settings, which are no tolerance's, in a row of their own."""


class Timed(NamedTuple):
    """What one solution took and what it reached."""

    seconds: float
    gap: float
    """The share of the variance missed; at most the tolerance, if it was reached."""


def ladders(solver: str, components: int, points: int) -> list[list[Setting]]:
    """Return the settings that :func:`tuned` may choose from."""
    if solver == "randomised SVD":
        return [[{"oversampling": extra, "power": power} for power in range(11)] for extra in (5, 10, 20)]
    if solver == "Lanczos":
        wanted = (components + 2, 3 * components // 2 + 2, 2 * components + 1)
        return [
            [{"tolerance": 10.0**-k, "vectors": count} for k in range(13)]
            for count in sorted({min(count, points) for count in wanted})
        ]
    if solver == DUAL:
        return [[{"tolerance": 10 ** (-k / 4), "memory": memory} for k in range(61)] for memory in (5, 10, 20)]
    return [[{}]]


def timed(solver: str, setting: Setting, gram: Array, exact: Array, draws: np.random.Generator) -> Timed:
    """Solve once; ``exact``: the top s eigenvalues, where s components are sought."""
    start = time.perf_counter()
    found = SOLVERS[solver](gram, len(exact), draws, **setting)
    return Timed(time.perf_counter() - start, variance_gap(found, gram, exact))


def tuned(solver: str, gram: Array, exact: Array, tolerance: float, seeds: Sequence[Sequence[int]]) -> Setting:
    """Return the fastest setting that reaches the tolerance with each seed, or the most exact where none does."""
    choices = ladders(solver, len(exact), len(gram))
    if choices == [[{}]]:
        return {}
    reached: dict[float, Setting] = {}
    for ladder in choices:
        for setting in ladder:
            if seconds := _seconds(solver, setting, gram, exact, tolerance, seeds):
                reached[seconds] = setting
                break
    return reached[min(reached)] if reached else choices[-1][-1]


def _seconds(
    solver: str, setting: Setting, gram: Array, exact: Array, tolerance: float, seeds: Sequence[Sequence[int]]
) -> float | None:
    """Return the median time over seeds; None as soon as one misses the tolerance."""
    seconds = []
    for seed in seeds:
        one = timed(solver, setting, gram, exact, np.random.default_rng(seed))
        if one.gap > tolerance:
            return None
        seconds.append(one.seconds)
    return statistics.median(seconds)
