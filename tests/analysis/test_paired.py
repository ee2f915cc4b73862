"""Paired differences against scipy, statsmodels' published example, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from kattn_cli.tables.paired import paired_difference


def answers(right: int, wrong: int) -> np.ndarray:
    return np.array([1] * right + [0] * wrong)


def test_one_seed_is_mcnemar_s_exact_test() -> None:
    """Of 100 images, 12 are gained and 4 lost."""
    first = np.array([0] * 12 + [1] * 4 + [1] * 84)
    second = np.array([1] * 12 + [0] * 4 + [1] * 84)
    found = paired_difference({0: first}, {0: second})
    assert found is not None
    assert found.points == pytest.approx(8)
    assert found.p_value == pytest.approx(stats.binomtest(12, 16).pvalue)
    assert (found.seeds, found.images, found.verdict) == (1, 100, "too few seeds to tell")
    centre, spread = 8 / 102, np.sqrt(17 - 64 / 102) / 102
    assert (found.low, found.high) == pytest.approx(
        (100 * (centre - 1.959964 * spread), 100 * (centre + 1.959964 * spread)), rel=1e-6
    )


def test_several_seeds_are_student_s_paired_test() -> None:
    first = {seed: answers(right, 200 - right) for seed, right in enumerate((100, 120, 110, 104))}
    second = {seed: answers(right, 200 - right) for seed, right in enumerate((110, 126, 124, 112))}
    found = paired_difference(first, second)
    assert found is not None
    points = [5.0, 3.0, 7.0, 4.0]
    theirs = stats.ttest_rel([55, 63, 62, 56], [50, 60, 55, 52])
    interval = theirs.confidence_interval(0.95)
    assert found.points == pytest.approx(np.mean(points))
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.verdict == "higher"


def test_verdicts() -> None:
    lower = paired_difference({s: answers(90, 10) for s in range(3)}, {s: answers(80 + s, 20 - s) for s in range(3)})
    same = paired_difference({s: answers(90, 10) for s in range(3)}, {s: answers(89 + s, 11 - s) for s in range(3)})
    equal = paired_difference({s: answers(9, 1) for s in range(3)}, {s: answers(9, 1) for s in range(3)})
    assert lower is not None
    assert same is not None
    assert equal is not None
    assert lower.verdict == "lower"
    assert same.verdict == "no difference shown"
    assert (equal.points, equal.p_value, equal.verdict) == (0, 1, "no difference shown")


def test_only_shared_seeds_and_the_same_images_are_compared() -> None:
    found = paired_difference({0: answers(5, 5), 1: answers(9, 1)}, {1: answers(8, 2), 2: answers(1, 9)})
    assert found is not None
    assert (found.seeds, found.points) == (1, pytest.approx(-10))
    assert paired_difference({0: answers(5, 5)}, {1: answers(5, 5)}) is None
    assert paired_difference({0: answers(5, 5)}, {0: answers(5, 6)}) is None


def test_where_there_is_no_difference_none_is_found_at_the_stated_rate() -> None:
    """2,000 pairs of equal models, three seeds each: one in twenty is called different."""
    generator = np.random.default_rng(0)
    called = 0
    for _ in range(2000):
        first, second = ({s: generator.random(200) < 0.7 for s in range(3)} for _ in range(2))
        found = paired_difference(
            {s: one.astype(int) for s, one in first.items()}, {s: one.astype(int) for s, one in second.items()}
        )
        assert found is not None
        called += found.verdict != "no difference shown"
    assert 0.035 < called / 2000 < 0.065
