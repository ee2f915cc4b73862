"""Power, against statsmodels, published tables and what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from kattn_cli.statistics.power import (
    Components,
    equivalence_power,
    images_needed,
    power,
    seeds_needed,
    smallest_effect,
)


@pytest.mark.parametrize(("effect", "seeds"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_seeds_are_those_of_published_tables(effect: float, seeds: int) -> None:
    """Of a paired t test at 0.05, two-sided, with power 0.8 (Cohen, 1988; G*Power)."""
    assert seeds_needed(Components(1.0), effect) == seeds


@pytest.mark.parametrize(
    ("effect", "seeds", "level"), [(0.5, 10, 0.05), (1.5, 3, 0.05), (3.0, 5, 0.005), (0.0, 5, 0.05)]
)
def test_power_is_statsmodels(effect: float, seeds: int, level: float) -> None:
    tests = pytest.importorskip("statsmodels.stats.power")
    expected = tests.TTestPower().power(effect, seeds, level)
    assert power(effect, 1 / math.sqrt(seeds), seeds - 1, level) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("images", [0, 500])
def test_the_smallest_effect_is_seen_as_often_as_asked(images: int) -> None:
    pilot = Components(0.3, 90.0, 90.0)
    for seeds in (3, 10):
        assert pilot.power(smallest_effect(pilot, seeds, images), seeds, images) == pytest.approx(0.8, abs=1e-4)
    assert power(1e6, 1.0, 4) == 1.0


def test_of_images_without_variance_only_seeds_count() -> None:
    """The average over what the variance is found to be is Student's noncentral distribution."""
    pilot = Components(2.0)
    for effect, seeds in ((1.0, 3), (1.0, 10), (4.0, 3), (0.0, 5)):
        assert pilot.power(effect, seeds, 10**9) == pytest.approx(pilot.power(effect, seeds), abs=2e-3)


@pytest.mark.parametrize("effect", [0.0, 0.4])
def test_power_of_equivalence_is_what_is_drawn(effect: float) -> None:
    random = np.random.default_rng(0)
    draws = random.normal(effect, 0.8, (40_000, 8))
    error = draws.std(1, ddof=1) / math.sqrt(8)
    within = np.abs(draws.mean(1)) + stats.t.ppf(0.95, 7) * error < 1
    assert equivalence_power(1.0, 0.8 / math.sqrt(8), 7, effect=effect) == pytest.approx(within.mean(), abs=0.008)


def test_images_and_seeds_each_have_a_limit_that_the_other_does_not_lift() -> None:
    pilot = Components(seed=1.0, image=900.0, both=900.0)
    assert seeds_needed(pilot, 2.0, images=100) is None
    assert images_needed(pilot, 0.5, seeds=5) is None
    seeds = seeds_needed(pilot, 2.0, images=2000)
    assert seeds is not None
    for more, enough in ((0, True), (-1, False)):
        count = seeds + more
        assert (pilot.power(2.0, count, 2000) >= 0.8) is enough
    images = images_needed(pilot, 2.0, seeds=10)
    assert images is not None
    assert pilot.power(2.0, 10, images) == pytest.approx(0.8, abs=0.01)
