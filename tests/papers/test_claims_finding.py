"""Verdicts by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from scipy import stats

from kattn_cli.papers.claim import Verdict, judged
from kattn_cli.papers.verdict import measured_in_words


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


def test_one_number_for_all_seeds_tells_nothing() -> None:
    """Three seeds that gain one image of 24 each: a spread of 0 among multiples of one image is not certainty."""
    for gain, bound in ((100 / 24, 0.0), (0.0, 0.0), (1.0, 3.0)):
        found = judged("x", dict.fromkeys(range(3), gain), above=bound)
        assert (found.mean, found.p_value, found.verdict) == (gain, 1, Verdict.cannot_be_told)
        assert math.isnan(found.low)
        assert math.isnan(found.high)
    shown = pd.Series({"mean": 100 / 24, "low": math.nan, "high": math.nan, "seeds": 3})
    assert measured_in_words(shown) == "4.17 (the same for 3 seeds)"
    assert measured_in_words(pd.Series({**shown, "seeds": 1})) == "4.17 (1 seed)"


def test_few_seeds_have_no_p_value() -> None:
    assert math.isnan(judged("x", {0: 9.0, 1: 9.1}, above=0).p_value)
    assert judged("x", {0: 1.0}, above=0, paper_number=0.5).paper_number == 0.5
