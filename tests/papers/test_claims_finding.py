"""Verdicts by hand."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from kattn_cli.papers.claim import Verdict, judged


def test_the_interval_decides() -> None:
    """Seeds 1, 2, 3: mean 2, half width 4.3027 / √3 = 2.484."""
    seeds = {0: 1.0, 1: 2.0, 2: 3.0}
    found = judged("x", seeds, above=0)
    assert (found.mean, found.high - found.mean, found.seeds) == pytest.approx((2, 2.4841, 3), abs=1e-4)
    assert found.verdict is Verdict.cannot_be_told
    assert judged("x", seeds, above=-0.5).verdict is Verdict.holds
    assert judged("x", seeds, above=4.5).verdict is Verdict.does_not_hold
    assert judged("x", seeds, below=4.5).verdict is Verdict.holds
    assert judged("x", seeds, below=-0.5).verdict is Verdict.does_not_hold
    assert judged("x", seeds, below=2).verdict is Verdict.cannot_be_told


def test_few_seeds_and_numbers_that_are_none_cannot_tell() -> None:
    assert judged("x", {0: 9.0, 1: 9.1}, above=0).verdict is Verdict.cannot_be_told
    assert judged("x", {0: 9.0, 1: math.nan, 2: 9.1, 3: math.inf}, above=0).seeds == 2
    empty = judged("x", {0: math.nan}, above=0)
    assert (empty.seeds, empty.verdict) == (0, Verdict.cannot_be_told)
    assert math.isnan(empty.mean)


def test_the_p_value_is_below_a_twentieth_where_the_interval_leaves_the_bound_out() -> None:
    """Seeds 1, 2, 3: t = (2 − bound)·√3; p of scipy's one-sample test."""
    seeds = {0: 1.0, 1: 2.0, 2: 3.0}
    for bound in (-0.5, -0.4841, 0.0, 1.9, 2.0, 4.4841, 4.5):
        found = judged("x", seeds, above=bound)
        assert found.p_value == pytest.approx(stats.ttest_1samp([1.0, 2.0, 3.0], bound).pvalue)
        assert (found.p_value < 0.05) == (found.verdict is not Verdict.cannot_be_told)
    assert (
        judged("x", seeds, below=0).p_value == judged("x", seeds, above=0).p_value == pytest.approx(0.07418, abs=1e-5)
    )


def test_seeds_that_agree_are_told_and_few_seeds_have_no_p_value() -> None:
    assert (
        judged("x", dict.fromkeys(range(3), 1.0), above=0).p_value,
        judged("x", {0: 9.0, 1: 9.1}, above=0).seeds,
    ) == (
        0.0,
        2,
    )
    assert judged("x", dict.fromkeys(range(3), 0.0), above=0).p_value == 1
    assert math.isnan(judged("x", {0: 9.0, 1: 9.1}, above=0).p_value)
    assert judged("x", {0: 1.0}, above=0, paper_number=0.5).paper_number == 0.5
