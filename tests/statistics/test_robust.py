"""Signed ranks, against scipy's and by counting all signs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from kattn_cli.statistics.robust import heavy, ranks
from kattn_cli.statistics.two_way import one_sample, samples
from kattn_cli.statistics.verdict import Question, Verdict, decide

J_PROJ = {0: -2.4, 1: -2.5, 2: -2.2, 3: 76.0, 4: 1721.0}
"""A penalised loss of five seeds."""


def by_seed(values: np.ndarray) -> dict[int, float]:
    return dict(enumerate(values.tolist()))


@pytest.mark.parametrize("count", [3, 6, 9])
def test_p_values_are_scipys_exact_ones(count: int) -> None:
    values = np.random.default_rng(count).normal(0.5, 1, count)
    found = ranks(by_seed(values))
    assert found.p_apart() == pytest.approx(stats.wilcoxon(values, method="exact").pvalue)
    assert found.p_above(0.2) == pytest.approx(
        stats.wilcoxon(values - 0.2, method="exact", alternative="greater").pvalue
    )


def test_ties_and_zeros_are_counted_exactly() -> None:
    values = np.array([1.0, 1, 2, -1, -2, 0, 3])
    signed = stats.rankdata(np.abs(values[values != 0])) * np.sign(values[values != 0])
    counted = stats.permutation_test(
        (signed,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="greater"
    )
    assert ranks(by_seed(values)).p_above(0) == pytest.approx(counted.pvalue)


def test_the_interval_is_where_the_test_does_not_reject() -> None:
    found = ranks(by_seed(np.random.default_rng(0).standard_t(2, 9)))
    low, high = found.interval()
    for inside, outside in ((low + 1e-9, low - 1e-9), (high - 1e-9, high + 1e-9)):
        assert found.p_apart(inside) > 0.05 >= found.p_apart(outside)


def test_a_heavy_tail_is_judged_by_ranks_which_five_seeds_are_too_few_for() -> None:
    assert heavy(list(J_PROJ.values()))
    found = one_sample(J_PROJ)
    assert found.model == "signed ranks"
    (decision,) = decide([Question(found, 1.0)])
    assert decision.verdict is Verdict.undecided
    assert "signed ranks of 5 seeds cannot go below p = 0.0625" in decision.sentence


def test_six_seeds_on_one_side_are_told_whatever_the_tail() -> None:
    found = one_sample({**J_PROJ, 0: 2.4, 1: 2.5, 2: 2.2, 5: 2.1})
    assert found.model == "signed ranks"
    assert found.p_apart() == pytest.approx(2 / 2**6)


def test_a_heavy_tail_lends_its_spread_to_no_other_comparison() -> None:
    quiet = by_seed(np.random.default_rng(1).normal(0, 1, 5))
    beside_it, _ = samples([quiet, J_PROJ])
    assert beside_it.interval() == pytest.approx(one_sample(quiet).interval())


@pytest.mark.parametrize("seed", range(3))
def test_normal_numbers_are_seldom_called_heavy(seed: int) -> None:
    draws = np.random.default_rng(seed).normal(size=(1000, 5))
    assert np.mean([heavy(draw) for draw in draws]) < 0.035
    assert not heavy([1.0, 2.0, 1e9])


def test_the_seeds_that_an_effect_takes_tell_it() -> None:
    """By drawing as many from the same tails."""
    random = np.random.default_rng(0)
    found = ranks(by_seed(random.standard_t(3, 12)))
    needed = found.seeds_for(1.0)
    assert needed is not None
    noise = random.choice(np.asarray(found.values) - found.estimate, (400, needed)) * random.choice(
        [-1, 1], (400, needed)
    )
    told = [ranks(by_seed(draw + 1.0)).p_apart() <= 0.05 for draw in noise]
    assert 0.72 < np.mean(told) < 0.92
