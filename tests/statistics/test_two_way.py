"""Pooled, moderated and own variances, against least squares and against what is committed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from kattn_cli.statistics.effect import StudentEffect
from kattn_cli.statistics.two_way import MODERATED, OWN, POOLED, compare, one_sample, prior_df, samples
from kattn_cli.statistics.verdict import Question, decide

REFERENCE = Path(__file__).parents[2] / "results" / "reference"


def top1(folder: str, split: str) -> dict[str, dict[int, float]]:
    """Return arm → seed → clean top-1 over the most images, of a folder of reference runs."""
    values: dict[str, dict[int, float]] = {}
    for path in sorted((REFERENCE / folder).glob("*/*/eval.csv")):
        rows = pd.read_csv(path)
        rows = rows[(rows["split"] == split) & (rows["severity"] == 0)].sort_values("images")
        values.setdefault(path.parts[-3], {})[int(path.parts[-2])] = float(rows["top1"].iloc[-1])
    return values


def of_one(first: dict[int, float], second: dict[int, float]) -> StudentEffect:
    found = one_sample({seed: value - second[seed] for seed, value in first.items()})
    assert isinstance(found, StudentEffect)
    return found


def test_a_lucky_low_spread_on_sentences_loses_its_certainty() -> None:
    values = top1("sentences/moe", "validation")
    ours, base = "small_rpc_symmetric", "small_symmetric"
    assert of_one(values[ours], values[base]).p_apart() == pytest.approx(0.0008, abs=5e-5)
    found = compare(values, [(ours, base), ("small_rpc_softmax", "small_softmax")])[0]
    assert found.p_apart() == pytest.approx(0.10, abs=0.005)
    assert found.model.endswith(POOLED)


def test_a_lucky_low_spread_on_fashion_loses_its_certainty() -> None:
    values = top1("fashion_mnist", "test")
    assert of_one(values["rpc_6"], values["rpc"]).p_apart() == pytest.approx(0.031, abs=5e-4)
    found = compare(values, [(arm, "rpc") for arm in values if arm != "rpc"])
    rpc_6 = found[[arm for arm in values if arm != "rpc"].index("rpc_6")]
    assert rpc_6.p_apart() == pytest.approx(0.46, abs=0.005)


def drawn(arms: int, seeds: int, scale: list[float] | None = None, seed: int = 0) -> dict[str, dict[int, float]]:
    random = np.random.default_rng(seed)
    numbers = random.normal(size=(arms, seeds)) * np.asarray(scale or [1.0] * arms)[:, None] + random.normal(size=seeds)
    return {str(arm): dict(enumerate(row.tolist())) for arm, row in enumerate(numbers)}


def test_what_could_have_been_seen_is_what_the_test_that_was_made_could_see() -> None:
    """Three seeds of eight arms leave 14 degrees of freedom, with which much less is seen than with a pair's own 2."""
    (effect, *_) = compare(drawn(8, 3), [(str(arm), "0") for arm in range(1, 8)])
    assert isinstance(effect, StudentEffect)
    assert (effect.df, effect.seeds) == (14, 3)
    shift, quantile = effect.smallest() / effect.standard_error, stats.t.ppf(0.975, 14)
    assert stats.nct.sf(quantile, 14, shift) == pytest.approx(0.8, abs=1e-4)
    assert effect.power(effect.smallest()) == pytest.approx(0.8, abs=1e-4)
    assert effect.seeds_for(effect.smallest()) == 3


def test_two_arms_are_students_paired_test() -> None:
    values = drawn(2, 6)
    (found,) = compare(values, [("0", "1")])
    one, other = (list(values[arm].values()) for arm in "01")
    assert found.p_apart() == pytest.approx(stats.ttest_rel(one, other).pvalue)
    assert found.interval() == pytest.approx(tuple(stats.ttest_rel(one, other).confidence_interval()))


def test_pooled_is_the_analysis_of_variance_with_seeds_that_lack() -> None:
    values = drawn(4, 5)
    del values["3"][4], values["1"][0]
    cells = [(arm, seed, value) for arm, row in values.items() for seed, value in row.items()]
    design = np.array([[arm == one for one in "0123"] + [seed == one for one in range(5)] for arm, seed, _ in cells])
    numbers = np.array([value for *_, value in cells])
    left = numbers - design @ np.linalg.lstsq(design.astype(float), numbers, rcond=None)[0]
    df = len(cells) - (4 + 5 - 1)
    found = [one for one in compare(values, [("0", "3"), ("1", "2"), ("2", "0"), ("1", "3")]) if POOLED in one.model]
    assert found
    for one in found:
        assert isinstance(one, StudentEffect)
        assert one.df == df
        assert one.standard_error == pytest.approx(math.sqrt(2 * (left**2).sum() / df / one.seeds))


def test_a_noisy_arm_is_judged_by_its_own_variance() -> None:
    values = drawn(6, 8, [1, 1, 1, 1, 1, 8])
    quiet, noisy = compare(values, [("0", "1"), ("5", "0"), ("2", "0"), ("3", "0"), ("4", "0")])[:2]
    assert noisy.model.endswith(OWN)
    assert noisy.interval() == pytest.approx(of_one(values["5"], values["0"]).interval())
    assert quiet.model.endswith(MODERATED)


def test_prior_degrees_of_freedom_are_smyths_moments() -> None:
    """Of variances that are drawn from his model: s² ~ (d₀ / χ²_d₀) χ²_d / d."""
    random = np.random.default_rng(0)
    variances = 6 / random.chisquare(6, 4000) * random.chisquare(4, 4000) / 4
    assert prior_df(variances, np.full(4000, 4)) == pytest.approx(6, rel=0.15)
    logs = np.log(variances) - special.digamma(2) + np.log(2)
    found = prior_df(variances, np.full(4000, 4))
    assert special.polygamma(1, found / 2) == pytest.approx(logs.var(ddof=1) - special.polygamma(1, 2))
    assert prior_df(random.chisquare(4, 12) / 4, np.full(12, 4)) == math.inf


def test_equal_differences_tell_nothing_alone_and_something_beside_others() -> None:
    same = {0: 1.0, 1: 1.0, 2: 1.0}
    alone = one_sample(same)
    assert alone.p_apart() == 1.0
    assert "a spread of 0 is not a variance of 0" in decide([Question(alone, 1.0)])[0].sentence
    beside_others = samples([same, *drawn(3, 3).values()])[0]
    assert 0 < beside_others.p_apart() < 1


def test_a_seed_that_is_not_a_number_is_told() -> None:
    values = drawn(3, 5)
    values["1"][2] = math.nan
    found = compare(values, [("1", "0"), ("2", "0")])
    assert [one.missing for one in found] == [1, 0]
    assert [one.seeds for one in found] == [4, 5]
    assert "1 seed left out whose number is not one" in decide([Question(one, 1.0) for one in found])[0].sentence
    assert one_sample({0: math.nan, 1: 2.0, 2: 3.0}).missing == 1


def test_arms_that_share_no_seed_were_not_measured() -> None:
    (found,) = compare({"a": {0: 1.0}, "b": {1: 2.0}}, [("a", "b")])
    assert math.isnan(found.p_apart())
    assert decide([Question(found, 1.0)])[0].sentence == "Undecided: nothing was measured; no seed has both."
