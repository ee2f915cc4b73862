"""The settings that solvers of kernel PCA are given: the cheapest that reach the tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from kattn_cli.kernel_pca.solvers import full
from kattn_cli.kernel_pca.tuning import DEFAULTS, DUAL, SOLVERS, ladders, timed, tuned

X = np.random.default_rng(0).normal(size=(200, 30)) / np.arange(1, 31)
GRAM = X @ X.T
EXACT = full(GRAM, 5).values
SEEDS = [(0, draw) for draw in range(3)]


def gaps(solver: str, setting: dict[str, float]) -> list[float]:
    return [timed(solver, setting, GRAM, EXACT, np.random.default_rng(seed)).gap for seed in SEEDS]


@pytest.mark.parametrize("solver", ["Lanczos", "randomised SVD", DUAL])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_the_first_of_its_ladder_that_reaches_the_tolerance(solver: str, tolerance: float) -> None:
    chosen = tuned(solver, GRAM, EXACT, tolerance, SEEDS)
    ladder = next(one for one in ladders(solver, 5, 200) if chosen in one)
    assert max(gaps(solver, dict(chosen))) <= tolerance
    assert all(max(gaps(solver, dict(cheaper))) > tolerance for cheaper in ladder[: ladder.index(chosen)])


def test_the_most_exact_setting_where_none_reaches() -> None:
    assert tuned("randomised SVD", GRAM, EXACT, -1.0, SEEDS) == {"oversampling": 20, "power": 10}


@pytest.mark.parametrize("solver", ["full", DEFAULTS])
def test_nothing_to_tune(solver: str) -> None:
    assert tuned(solver, GRAM, EXACT, 1e-2, SEEDS) == {}


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_last_setting_of_every_ladder_is_nearly_exact(solver: str) -> None:
    for ladder in ladders(solver, 5, 200):
        assert max(gaps(solver, dict(ladder[-1]))) < 1e-9


def test_lanczos_keeps_no_more_vectors_than_there_are_points() -> None:
    assert [ladder[0]["vectors"] for ladder in ladders("Lanczos", 20, 30)] == [22, 30]
