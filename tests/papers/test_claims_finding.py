"""What one label says, by hand: numbers against bounds, pairs, facts, scales."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import pytest
from papers.nimble import PAPER
from scipy import stats

from kattn_cli.papers.claim import Claim, Fact, Finding, Kind, Scale, Truth, against_bound, truth_of
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.pairs import Pair
from kattn_cli.papers.verdict import judged, measured_in_words
from kattn_cli.tables.margins import CLEAN

SEEDS = {0: 1.0, 1: 2.0, 2: 3.0}
LUCKY = {"softmax": {0: 77.0, 1: 79.0, 2: 75.5}, "symmetric": {0: 78.26, 1: 80.38, 2: 76.88}}
"""Differences 1.26, 1.38 and 1.38: by themselves p = 0.0009."""
NOISY = {"rpc": {0: 79.5, 1: 77.5, 2: 76.5}, "tssa": {0: 76.5, 1: 80.0, 2: 74.0}, "xca": {0: 76.0, 1: 77.0, 2: 77.5}}


def rows_of(
    *found: Finding, margin: bool = False, kind: Kind = Kind.statistical, scale: Scale | None = None
) -> pd.DataFrame:
    claim = Claim("§1", "It is.", "c", "kattn x", lambda evidence: list(found), CLEAN if margin else None, kind, scale)
    return judged([(PAPER, claim)], Evidence([]))


def verdicts_of(*found: Finding, margin: bool = False) -> Sequence[str]:
    return rows_of(*found, margin=margin)["verdict"].tolist()


def test_the_interval_decides_against_a_bound() -> None:
    """Seeds 1, 2, 3: mean 2, half width 4.3027 / √3 = 2.484."""
    row = rows_of(against_bound("x", SEEDS, above=0)).iloc[0]
    assert (row["mean"], row["high"] - row["mean"], row["seeds"]) == pytest.approx((2, 2.4841, 3), abs=1e-4)
    assert row["verdict"] == "undecided"
    assert verdicts_of(against_bound("x", SEEDS, above=-0.5)) == ["holds"]
    assert verdicts_of(against_bound("x", SEEDS, above=4.5)) == ["does not hold"]
    assert verdicts_of(against_bound("x", SEEDS, below=4.5)) == ["holds"]
    assert verdicts_of(against_bound("x", SEEDS, below=-0.5)) == ["does not hold"]
    assert verdicts_of(against_bound("x", SEEDS, below=2)) == ["undecided"]


def test_an_undecided_number_says_what_it_would_take() -> None:
    """Of seeds 1, 2, 3 the mean is 2 from the bound, with a deviation of 1: by Student's power, five seeds."""
    row = rows_of(against_bound("x", SEEDS, above=0)).iloc[0]
    assert row["seeds_needed"] == 5
    assert row["reason"].startswith("Undecided: 2 [−0.484, 4.48] of 3 seeds, to be above 0; ")
    assert row["reason"].endswith("from the bound could have been seen (power 0.8); what is seen takes 5 seeds.")
    assert row["p_value"] == pytest.approx(stats.ttest_1samp([1.0, 2.0, 3.0], 0).pvalue)


def test_few_seeds_tell_nothing() -> None:
    few = rows_of(against_bound("x", {0: 9.0, 1: 9.1}, above=0)).iloc[0]
    assert (few["verdict"], few["reason"].partition("; ")[2]) == ("undecided", "it takes 3 seeds.")
    assert math.isnan(few["p_holm"])


def test_a_number_that_is_none_is_told_and_nothing_is_judged_without_it() -> None:
    """Four seeds far above the bound, one that is not a number: not dropped."""
    row = rows_of(against_bound("x", {0: 9.0, 1: 9.1, 2: 9.2, 3: 9.1, 4: math.nan}, above=0)).iloc[0]
    assert (row["verdict"], row["reason"], row["seeds"]) == ("undecided", "no number for 1 of 5 seeds", 4)
    empty = rows_of(against_bound("x", {0: math.nan}, above=0)).iloc[0]
    assert (empty["verdict"], empty["reason"], empty["seeds"]) == ("undecided", "no number for 1 of 1 seeds", 0)
    assert math.isnan(empty["mean"])
    lost = Pair("a", "b", {0: 1.0, 1: math.nan}, {0: 1.0, 1: 2.0})
    assert lost.why == "no number for 1 of 2 seeds"


def test_one_number_for_all_seeds_tells_nothing() -> None:
    """Three seeds that gain one image of 24 each: a spread of 0 among multiples of one image is not certainty."""
    for gain, bound in ((100 / 24, 0.0), (0.0, 0.0), (1.0, 3.0)):
        row = rows_of(against_bound("x", dict.fromkeys(range(3), gain), above=bound)).iloc[0]
        assert (row["mean"], row["verdict"]) == (gain, "undecided")
        assert "a spread of 0 is not a variance of 0" in row["reason"]
        assert math.isnan(row["low"])
        assert math.isnan(row["high"])
    shown = pd.Series({"mean": 100 / 24, "low": math.nan, "high": math.nan, "seeds": 3})
    assert measured_in_words(shown) == "4.17 (the same for 3 seeds)"
    assert measured_in_words(pd.Series({**shown, "seeds": 1})) == "4.17 (1 seed)"


def test_a_lucky_low_spread_is_not_rewarded() -> None:
    """The pair alone is sure; with the variance of what was trained beside it, it is not."""
    alone = Pair("symmetric", "softmax", LUCKY["symmetric"], LUCKY["softmax"])
    among = Pair("symmetric", "softmax", LUCKY["symmetric"], LUCKY["softmax"], {**LUCKY, **NOISY})
    assert alone.effect() is not None
    assert among.effect() is not None
    assert alone.effect().p_apart() < 0.001  # type: ignore[union-attr]
    assert among.effect().p_apart() > 0.2  # type: ignore[union-attr]
    assert alone.effect().estimate == among.effect().estimate == pytest.approx(1.34)  # type: ignore[union-attr]


def test_nothing_left_is_no_comparison() -> None:
    """0 % against 0 % under an attack; 0 % against 1 % is one."""
    none, some = dict.fromkeys(range(3), 0.0), {0: 0.0, 1: 1.0, 2: 0.0}
    assert Pair("a", "b", none, none).why == "0 % against 0 % at every seed: there is nothing to compare"
    assert Pair("a", "b", some, none).why == ""
    whole = dict.fromkeys(range(3), 100.0)
    assert Pair("a", "b", whole, whole).why == "100 % against 100 % at every seed: there is nothing to compare"


def test_a_fact_is_true_false_or_within_its_spread() -> None:
    assert truth_of(0.5, 0.9, 1) is Truth.true
    assert truth_of(1.0, 1.0, 1) is Truth.false
    assert truth_of(0.9, 1.1, 1) is Truth.unclear
    row = rows_of(Fact("x", "cpu", 0.7, value=0.8, low=0.7, high=0.9, truth=Truth.true), kind=Kind.measurement).iloc[0]
    assert row[["class", "verdict", "mean", "paper_number"]].tolist() == ["measurement", "true", 0.8, 0.7]
    assert math.isnan(row["p_holm"])


def test_a_scale_says_what_is_missing() -> None:
    scale = Scale(tokens=1_000, accuracy=30, data=("Heartbeat",))
    assert str(scale) == "from 1,000 tokens and 30 % top-1 on, on Heartbeat"
    reached = Scale(tokens=64, accuracy=19.2, data=("JapaneseVowels",))
    assert scale.unmet(reached) == "1,000 tokens (here 64), 30 % top-1 (here 19.2), Heartbeat (here JapaneseVowels)"
    assert scale.unmet(Scale(tokens=1_000, accuracy=30, data=("Heartbeat", "x"))) == ""
    small = rows_of(
        Fact("x", value=2, low=2, high=2, truth=Truth.false, reached=Scale(batch=1)), scale=Scale(batch=256)
    )
    assert small[["class", "verdict"]].iloc[0].tolist() == ["scale-bound", "not tested at the paper's scale"]
    assert small["reason"][0] == "needs batches of 256 (here 1)"
    large = rows_of(
        Fact("x", value=2, low=2, high=2, truth=Truth.false, reached=Scale(batch=256)), scale=Scale(batch=256)
    )
    assert large["verdict"].tolist() == ["false"]
