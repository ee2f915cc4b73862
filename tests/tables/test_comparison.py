"""Paired comparisons against scipy and statsmodels' published example, Holm's correction, and no difference at all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from kattn_cli.tables.comparison import Paired, holm, judge, paired, paired_images, too_few


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


def test_one_gain_of_images_for_all_seeds_has_no_interval() -> None:
    found = paired_images(
        {s: answers(100 + s, 100 - s) for s in range(3)}, {s: answers(101 + s, 99 - s) for s in range(3)}
    )
    assert found is not None
    assert (found.points, found.p_value, found.verdict) == (pytest.approx(0.5), 1, "not told apart")
    assert math.isnan(found.low)
    assert math.isnan(found.high)


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


def answers(right: int, wrong: int) -> np.ndarray:
    return np.array([1] * right + [0] * wrong)


def test_one_seed_is_mcnemar_s_exact_test() -> None:
    """Of 100 images, 12 are gained and 4 lost."""
    first = np.array([0] * 12 + [1] * 4 + [1] * 84)
    second = np.array([1] * 12 + [0] * 4 + [1] * 84)
    found = paired_images({0: first}, {0: second})
    assert found is not None
    assert found.points == pytest.approx(8)
    assert found.p_value == pytest.approx(stats.binomtest(12, 16).pvalue)
    assert (found.seeds, found.images, found.verdict) == (1, 100, "too few seeds to tell")
    centre, spread = 8 / 102, np.sqrt(17 - 64 / 102) / 102
    assert (found.low, found.high) == pytest.approx(
        (100 * (centre - 1.959964 * spread), 100 * (centre + 1.959964 * spread)), rel=1e-6
    )


def test_one_seed_without_a_difference_is_certain_of_nothing() -> None:
    found = paired_images({0: answers(9, 1)}, {0: answers(9, 1)})
    assert found is not None
    assert (found.points, found.p_value) == (0, 1)


def test_several_seeds_are_student_s_paired_test() -> None:
    first = {seed: answers(right, 200 - right) for seed, right in enumerate((100, 120, 110, 104))}
    second = {seed: answers(right, 200 - right) for seed, right in enumerate((110, 126, 124, 112))}
    found = paired_images(first, second)
    assert found is not None
    points = [5.0, 3.0, 7.0, 4.0]
    theirs = stats.ttest_rel([55, 63, 62, 56], [50, 60, 55, 52])
    interval = theirs.confidence_interval(0.95)
    assert found.points == pytest.approx(np.mean(points))
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.verdict == "better"


def test_verdicts() -> None:
    lower = paired_images({s: answers(90, 10) for s in range(3)}, {s: answers(80 + s, 20 - s) for s in range(3)})
    same = paired_images({s: answers(90, 10) for s in range(3)}, {s: answers(89 + s, 11 - s) for s in range(3)})
    equal = paired_images({s: answers(9, 1) for s in range(3)}, {s: answers(9, 1) for s in range(3)})
    assert lower is not None
    assert same is not None
    assert equal is not None
    assert lower.verdict == "worse"
    assert same.verdict == "not told apart"
    assert (equal.points, equal.p_value, equal.verdict) == (0, 1, "not told apart")


def test_only_shared_seeds_and_the_same_images_are_compared() -> None:
    found = paired_images({0: answers(5, 5), 1: answers(9, 1)}, {1: answers(8, 2), 2: answers(1, 9)})
    assert found is not None
    assert (found.seeds, found.points) == (1, pytest.approx(-10))
    assert paired_images({0: answers(5, 5)}, {1: answers(5, 5)}) is None
    assert paired_images({0: answers(5, 5)}, {0: answers(5, 6)}) is None


def test_where_there_is_no_difference_none_is_found_at_the_stated_rate() -> None:
    """2,000 pairs of equal models, three seeds each: one in twenty is called different."""
    generator = np.random.default_rng(0)
    called = 0
    for _ in range(2000):
        first, second = ({s: generator.random(200) < 0.7 for s in range(3)} for _ in range(2))
        found = paired_images(
            {s: one.astype(int) for s, one in first.items()}, {s: one.astype(int) for s, one in second.items()}
        )
        assert found is not None
        called += found.verdict != "not told apart"
    assert 0.035 < called / 2000 < 0.065
