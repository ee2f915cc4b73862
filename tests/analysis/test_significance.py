"""Paired tests against scipy, Holm's correction against a published example, and both where nothing differs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from kattn_cli.tables.significance import PairedTests, holm, judge, paired_tests, too_few


def test_holm_by_hand() -> None:
    """The worked example of Wikipedia's article on the method: at 0.05, the first and the fourth are rejected."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.2]) == pytest.approx([0.2])
    assert holm([]).size == 0


def test_holm_is_monotone_and_at_most_1_and_keeps_nan() -> None:
    assert holm([0.5, math.nan, 0.02, 0.9]) == pytest.approx([1.0, math.nan, 0.06, 1.0], nan_ok=True)
    p = np.random.default_rng(0).uniform(size=(50, 7))
    adjusted, order = holm(p), np.argsort(p, -1)
    assert (np.diff(np.take_along_axis(adjusted, order, -1)) >= 0).all()
    assert ((adjusted >= p) & (adjusted <= 1)).all()
    assert adjusted[3] == pytest.approx(holm(p[3]))


@pytest.mark.parametrize("seeds", [2, 3, 5, 8])
def test_paired_tests_are_scipy_s(seeds: int) -> None:
    dice = np.random.default_rng(seeds)
    one, other = dice.normal(1, 2, seeds), dice.normal(0, 1, seeds)
    tests = paired_tests(dict(enumerate(one)), dict(enumerate(other)))
    expected = stats.ttest_rel(one, other)
    mean, half = tests.interval
    assert tests.t == pytest.approx(expected.pvalue, rel=1e-10)
    assert (mean - half, mean + half) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert tests.wilcoxon == pytest.approx(stats.wilcoxon(one, other, method="exact").pvalue)


def test_only_shared_seeds_with_numbers_count() -> None:
    tests = paired_tests({0: 3.0, 1: 5.0, 2: 9.0, 4: 1.0}, {4: math.nan, 2: 4.0, 1: 3.0, 7: 0.0})
    assert tests.gains == (2.0, 5.0)


def test_the_least_p_value_of_wilcoxon() -> None:
    tests = PairedTests((1.0, 2.0, 3.0, 4.0, 5.0))
    assert tests.least_wilcoxon == tests.wilcoxon == 0.0625
    assert PairedTests((0.1, 0.2, 0.3)).least_wilcoxon == 0.25


def test_ties_and_zeros_are_counted_exactly() -> None:
    """Of |gains| 1, 1, 2 (the 0 is left out) the ranks 1.5, 1.5, 3 all point up: 2 of 8 signs are as extreme."""
    assert PairedTests((1.0, 1.0, 0.0, 2.0)).wilcoxon == pytest.approx(2 / 8)
    assert PairedTests((-1.0, 1.0, 2.0)).wilcoxon == pytest.approx(6 / 8)
    assert PairedTests((0.0, 0.0, 0.0)).wilcoxon == 1.0


def test_without_variance() -> None:
    assert PairedTests((0.0, 0.0, 0.0)).t == 1.0
    assert PairedTests((0.5, 0.5, 0.5)).t == 0.0
    tenths = paired_tests({0: 0.3, 1: 0.7, 2: 0.4}, {0: 0.2, 1: 0.6, 2: 0.3})
    assert len(set(tenths.gains)) > 1
    assert tenths.t == 0.0
    assert [one.word for one in judge([tenths, PairedTests((0.0, 0.0, 0.0))])] == ["better", "not told apart"]


def test_words() -> None:
    clear, noisy, single = PairedTests((1.0, 1.1, 1.2)), PairedTests((1.0, -2.0, 1.5)), PairedTests((9.0, 9.1))
    judged = judge([clear, noisy, single, clear], [False, False, False, True])
    assert [one.word for one in judged] == ["better", "not told apart", "too few seeds to tell", "worse"]
    assert judged[0].t == pytest.approx(4 * clear.t)
    lone = judge([PairedTests(()), clear])
    assert [one.word for one in lone] == ["too few seeds to tell", "better"]
    assert lone[1].t == pytest.approx(clear.t)


def test_wilcoxon_says_where_its_seeds_are_too_few() -> None:
    five = PairedTests((1.0, 1.1, 1.2, 1.3, 1.4))
    assert [one.word for one in judge([five], test="wilcoxon")] == ["too few seeds to tell"]
    assert too_few([five], "wilcoxon") == "Too few seeds to tell: Wilcoxon on 5 seeds cannot go below p = 0.0625."
    six = PairedTests((1.0, 1.1, 1.2, 1.3, 1.4, 1.5))
    assert [one.word for one in judge([six], test="wilcoxon")] == ["better"]
    assert too_few([six], "wilcoxon") == ""
    assert "p = 0.03125, and there are 2 comparisons to correct for" in too_few([six, six], "wilcoxon")
    assert [one.word for one in judge([six, six], test="wilcoxon")] == ["too few seeds to tell"] * 2


def test_too_few_for_any_test() -> None:
    assert too_few([PairedTests((1.0, 2.0)), PairedTests((1.0,))]).startswith("2 seeds are too few")
    assert too_few([PairedTests((1.0,))]).startswith("1 seed is too few")
    assert too_few([PairedTests(())]) == "No two of them share a seed, so nothing can be compared."
    assert too_few([PairedTests((1.0, 2.0, 1.5)), PairedTests((1.0,))]) == ""


def _found(gains: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which of ``(repeats, comparisons, seeds)`` differences are told apart: ``(repeats, comparisons)``.

    The p-values of many families at once; that :func:`judge` says the same of one is seen on the first 20.
    """
    families = [[PairedTests(tuple(row)) for row in family] for family in gains.tolist()]
    found = holm([[one.t for one in family] for family in families]) <= 0.05
    words = [[one.word in ("better", "worse") for one in judge(family)] for family in families[:20]]
    assert found[:20].tolist() == words
    return found


def test_where_nothing_differs_nothing_is_found_but_in_5_of_100() -> None:
    """Four mechanisms against one baseline, 2,000 times, as the report compares them; ±3 Monte-Carlo errors."""
    values = np.random.default_rng(0).normal(90, 1, (2000, 5, 5))
    rate = _found(values[:, 1:] - values[:, :1]).any(1).mean()
    assert rate <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)
    assert rate > 0.02


def test_a_real_difference_is_found_and_the_others_are_not() -> None:
    values = np.random.default_rng(1).normal(90, 1, (400, 5, 5))
    values[:, 2] += 6
    found = _found(values[:, 1:] - values[:, :1]).mean(0)
    assert found[1] > 0.9
    assert found[[0, 2, 3]].max() < 0.05
