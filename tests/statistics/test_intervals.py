"""Intervals against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from kattn_cli.statistics.intervals import mean_interval, median_interval, power_law, wilson_interval


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (7, 10), (10, 10), (341, 355)])
def test_wilson_equals_scipy(successes: int, trials: int) -> None:
    expected = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_of_nothing_is_everything_and_of_all_stays_within() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    for trials in range(1, 200):
        assert 0 <= wilson_interval(0, trials)[0] < 1e-15
        assert 1 - 1e-15 < wilson_interval(trials, trials)[1] <= 1
    assert wilson_interval(30, 100, z=1) == pytest.approx((0.2563, 0.3477), abs=1e-4), "z²: (0.305 ± 0.0461) / 1.01"


def test_median_and_its_order_statistics() -> None:
    """Of nine, the second and the eighth: P(2 ≤ Binomial(9, ½) ≤ 7) = 0.961, and one fewer would be 0.82."""
    values = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.5, 4.0, 5.0]
    assert median_interval(values) == (5.0, 2.0, 8.0)
    median, low, high = median_interval([1.0, 2.0, 4.0])
    assert median == 2
    assert math.isnan(low)
    assert math.isnan(high)


def test_mean_interval_equals_scipy() -> None:
    values = [96.1, 97.2, 95.5]
    mean, half = mean_interval(values)
    low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high))
    assert math.isnan(mean_interval([1.0])[1])


def test_exponent_of_a_power_law() -> None:
    sizes = [64, 128, 256, 512]
    assert power_law(sizes, [3 * n**1.7 for n in sizes]) == pytest.approx((1.7, 1.7, 1.7))


@pytest.mark.parametrize("count", [3, 5])
def test_interval_of_an_exponent_equals_scipy(count: int) -> None:
    sizes, values = [64, 128, 256, 512, 1024][:count], [1.1, 1.9, 4.3, 7.8, 17.0][:count]
    fit = stats.linregress(np.log(sizes), np.log(values))
    half = stats.t.ppf(0.975, count - 2) * fit.stderr
    assert power_law(sizes, values) == pytest.approx((fit.slope, fit.slope - half, fit.slope + half))


def test_exponents_that_cannot_be_told() -> None:
    assert power_law([64, 128], [1.0, 4.0])[0] == pytest.approx(2)
    assert all(math.isnan(end) for end in power_law([64, 128], [1.0, 4.0])[1:]), "two sizes have no spread"
    for sizes, values in (([64], [1.0]), ([64, 64], [1.0, 2.0]), ([64, 128, 256], [0.0, 1.0, 2.0]), ([], [])):
        assert all(math.isnan(part) for part in power_law(sizes, values))
