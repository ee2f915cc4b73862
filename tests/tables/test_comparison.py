"""Paired comparisons against scipy and statsmodels' published example, Holm's correction, and no difference at all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from kattn_cli.statistics.multiplicity import holm
from kattn_cli.tables.comparison import Paired, judge, paired, too_few


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
    tests = paired(dict(enumerate(one)), dict(enumerate(other)))
    expected = stats.ttest_rel(one, other)
    mean, half = tests.interval
    assert tests.t == pytest.approx(expected.pvalue, rel=1e-10)
    assert (mean - half, mean + half) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert tests.wilcoxon == pytest.approx(stats.wilcoxon(one, other, method="exact").pvalue)


def test_only_shared_seeds_with_numbers_count() -> None:
    tests = paired({0: 3.0, 1: 5.0, 2: 9.0, 4: 1.0}, {4: math.nan, 2: 4.0, 1: 3.0, 7: 0.0})
    assert tests.differences == (2.0, 5.0)


def test_the_least_p_value_of_wilcoxon() -> None:
    tests = Paired((1.0, 2.0, 3.0, 4.0, 5.0))
    assert tests.least_wilcoxon == tests.wilcoxon == 0.0625
    assert Paired((0.1, 0.2, 0.3)).least_wilcoxon == 0.25


def test_ties_and_zeros_are_counted_exactly() -> None:
    """Of |gains| 1, 1, 2 (the 0 is left out) the ranks 1.5, 1.5, 3 all point up: 2 of 8 signs are as extreme."""
    assert Paired((1.0, 1.0, 0.0, 2.0)).wilcoxon == pytest.approx(2 / 8)
    assert Paired((-1.0, 1.0, 2.0)).wilcoxon == pytest.approx(6 / 8)
    assert Paired((0.0, 0.0, 0.0)).wilcoxon == 1.0


@pytest.mark.parametrize("images", [24, 200, 10_000])
def test_one_gain_for_all_seeds_is_not_certainty(images: int) -> None:
    """Each of three seeds gains one image: accuracies are quantised, so a spread of 0 is not a variance of 0."""
    right = {seed: round(0.7 * images) + seed for seed in range(3)}
    second = {seed: 100 * count / images for seed, count in right.items()}
    first = {seed: 100 * (count + 1) / images for seed, count in right.items()}
    gain, nothing, clear = paired(first, second), Paired((0.0, 0.0, 0.0)), Paired((1.0, 1.01, 1.02))
    assert gain.interval[0] == pytest.approx(100 / images)
    for one in (gain, nothing, Paired((0.5, 0.5))):
        assert one.t == 1
        assert math.isnan(one.interval[1])
    assert gain.verdict() == "not told apart"
    judged = judge([gain, nothing, clear])
    assert [one.verdict for one in judged] == ["not told apart", "not told apart", "better"]
    assert judged[2].t == pytest.approx(3 * clear.t), "Holm counts all three"


def test_words() -> None:
    clear, noisy, single = Paired((1.0, 1.1, 1.2)), Paired((1.0, -2.0, 1.5)), Paired((9.0, 9.1))
    judged = judge([clear, noisy, single, clear], [False, False, False, True])
    assert [one.verdict for one in judged] == ["better", "not told apart", "too few seeds to tell", "worse"]
    assert judged[0].t == pytest.approx(4 * clear.t)
    lone = judge([Paired(()), clear])
    assert [one.verdict for one in lone] == ["too few seeds to tell", "better"]
    assert lone[1].t == pytest.approx(clear.t)


def test_the_word_of_one_comparison_alone() -> None:
    clear, noisy = Paired((1.0, 1.1, 1.2)), Paired((1.0, -2.0, 1.5))
    assert (clear.verdict(), clear.verdict(lower_is_better=True)) == ("better", "worse")
    assert Paired((-1.0, -1.1, -1.2)).verdict() == "worse"
    assert (noisy.verdict(), Paired((9.0, 9.1)).verdict()) == ("not told apart", "too few seeds to tell")


def test_each_comparison_says_whether_lower_is_better() -> None:
    with pytest.raises(ValueError, match="shorter"):
        judge([Paired((1.0, 2.0, 3.0))] * 2, [True])


def test_wilcoxon_says_where_its_seeds_are_too_few() -> None:
    five = Paired((1.0, 1.1, 1.2, 1.3, 1.4))
    assert [one.verdict for one in judge([five], test="wilcoxon")] == ["too few seeds to tell"]
    assert too_few([five], "wilcoxon") == "Too few seeds to tell: Wilcoxon on 5 seeds cannot go below p = 0.0625."
    six = Paired((1.0, 1.1, 1.2, 1.3, 1.4, 1.5))
    assert [one.verdict for one in judge([six], test="wilcoxon")] == ["better"]
    assert too_few([six], "wilcoxon") == ""
    assert "p = 0.03125, and there are 2 comparisons to correct for" in too_few([six, six], "wilcoxon")
    assert [one.verdict for one in judge([six, six], test="wilcoxon")] == ["too few seeds to tell"] * 2


def test_the_test_that_is_asked_for_decides() -> None:
    """Six gains of one sign, one of them a hundred times the others: the ranks are sure, the mean is not."""
    gains = Paired((0.1, 0.2, 0.15, 0.12, 0.3, 30.0))
    assert gains.wilcoxon < 0.05 < gains.t
    assert [judge([gains], test=test)[0].verdict for test in ("t", "wilcoxon")] == ["not told apart", "better"]


def test_too_few_for_any_test() -> None:
    assert too_few([Paired((1.0, 2.0)), Paired((1.0,))]).startswith("2 seeds are too few")
    assert too_few([Paired((1.0,))]).startswith("1 seed is too few")
    assert too_few([Paired(())]) == "No two of them share a seed, so nothing can be compared."
    assert too_few([Paired((1.0, 2.0, 1.5)), Paired((1.0,))]) == ""


def _found(gains: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which of ``(repeats, comparisons, seeds)`` differences are told apart: ``(repeats, comparisons)``.

    The p-values of many families at once; that :func:`judge` says the same of one is seen on the first 20.
    """
    families = [[Paired(tuple(row)) for row in family] for family in gains.tolist()]
    found = holm([[one.t for one in family] for family in families]) <= 0.05
    words = [[one.verdict in ("better", "worse") for one in judge(family)] for family in families[:20]]
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
