"""Bits of seeds and images: each model against another one, and what tells nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from kattn_cli.statistics.crossed import Bits, CrossedEffect, OneSeed, crossed, pigeonhole
from kattn_cli.statistics.verdict import Question, Verdict, decide


def drawn(
    seeds: int, images: int, random: np.random.Generator, *, gain: float = 0.0, of_seed: float = 0.15
) -> tuple[Bits, Bits]:
    """Draw the bits of two mechanisms by a mixed logistic model: images that are hard for all, seeds, and both."""
    hard = random.normal(1.5, 2, images)
    apart = gain + random.normal(0, of_seed, (seeds, 1)) + random.normal(0, 0.3, images)
    first = special.expit(hard + apart / 2) > random.random((seeds, images))
    second = special.expit(hard - apart / 2) > random.random((seeds, images))
    return dict(enumerate(first)), dict(enumerate(second))


def test_what_varies_is_that_of_the_two_way_table_of_differences() -> None:
    """Mean squares by a least-squares fit of seed and image."""
    first, second = drawn(4, 60, np.random.default_rng(0), of_seed=3.0)
    found = crossed(first, second)
    assert isinstance(found, CrossedEffect)
    gains = 100 * np.stack([first[seed].astype(float) - second[seed] for seed in first])
    seeds, images = (one.ravel() for one in np.indices(gains.shape))
    design = np.column_stack([np.eye(4)[seeds], np.eye(60)[images]])
    left = gains.ravel() - design @ np.linalg.lstsq(design, gains.ravel(), rcond=None)[0]
    both = (left**2).sum() / (3 * 59)
    assert found.estimate == pytest.approx(gains.mean())
    assert found.components is not None
    assert found.components.both == pytest.approx(both)
    assert found.components.seed == pytest.approx(gains.mean(1).var(ddof=1) - both / 60)
    assert found.components.image == pytest.approx(max(gains.mean(0).var(ddof=1) - both / 4, 0))


def test_where_images_vary_nothing_it_is_students_test_of_seeds() -> None:
    """Each seed's images are all alike but for the two that its arms differ by."""
    points = [3, 9, 5, 6]
    second = {seed: np.zeros(1000, bool) for seed in range(4)}
    first = {seed: np.arange(1000) < 10 * point for seed, point in enumerate(points)}
    found = crossed(first, second)
    student = stats.ttest_1samp(points, 0)
    low, high = student.confidence_interval()
    ours = found.interval()
    assert ours[0] <= low + 0.01 < high - 0.01 <= ours[1]
    assert found.p_apart() >= student.pvalue * 0.99


def test_the_pigeonhole_bootstrap_agrees_where_seeds_are_many() -> None:
    first, second = drawn(40, 400, np.random.default_rng(1), gain=0.2, of_seed=0.5)
    low, high = crossed(first, second).interval()
    drawn_low, drawn_high = pigeonhole(first, second).interval()
    assert (drawn_low, drawn_high) == pytest.approx((low, high), abs=0.25 * (high - low) / 2)


def test_a_mixed_logistic_model_agrees() -> None:
    """Both tell the same number of standard errors from 0."""
    glm = pytest.importorskip("statsmodels.genmod.bayes_mixed_glm")
    first, second = drawn(10, 150, np.random.default_rng(3), gain=0.6, of_seed=0.3)
    right = np.stack([*first.values(), *second.values()])
    arm, seed, image = np.repeat([0.5, -0.5], 10), np.tile(np.arange(10), 2), np.arange(150)
    arms, seeds, images = (np.repeat(arm, 150), np.repeat(seed, 150), np.tile(image, 20))
    fixed = np.column_stack([np.ones(len(arms)), arms])
    of_image, of_seed = np.eye(150)[images], np.eye(10)[seeds]
    random = np.column_stack([of_image, of_seed, of_seed * arms[:, None], of_image * arms[:, None]])
    kinds = np.repeat([0, 1, 2, 3], [150, 10, 10, 150])
    fitted = glm.BinomialBayesMixedGLM(right.ravel().astype(float), fixed, random, kinds).fit_vb()
    found = crossed(first, second)
    logits = fitted.fe_mean[1] / fitted.fe_sd[1]
    points = stats.t.isf(found.p_above(0), 9)
    assert points > 2
    assert logits == pytest.approx(points, rel=0.35)


def test_few_equal_seeds_do_not_hide_what_the_images_vary() -> None:
    """Gains on as many images with every seed, but on other images: the spread over seeds is 0, its variance is not."""
    random = np.random.default_rng(0)
    second = {seed: np.zeros(100, bool) for seed in range(3)}
    first = {seed: np.isin(np.arange(100), random.choice(100, 30, replace=False)) for seed in range(3)}
    found = crossed(first, second)
    assert found.estimate == pytest.approx(30)
    low, high = found.interval()
    assert 15 < low < high < 45


@pytest.mark.parametrize(
    ("share", "words"), [(0.0, "right on 0 % of all images"), (1.0, "right on 100 % of all images")]
)
def test_the_floor_against_the_floor_is_no_test(share: float, words: str) -> None:
    both = {seed: np.full(50, share, bool) for seed in range(5)}
    (decision,) = decide([Question(crossed(both, both), 1.0)])
    assert decision.verdict is Verdict.undecided
    assert words in decision.sentence


def test_near_the_floor_nothing_is_equivalent_by_arithmetic() -> None:
    """0.1 % against 0 % are within a margin of 3 points whatever the mechanisms are."""
    random = np.random.default_rng(0)
    first = {seed: random.random(2000) < 0.002 for seed in range(5)}
    second = {seed: random.random(2000) < 0.001 for seed in range(5)}
    (decision,) = decide([Question(crossed(first, second), 3.0, published=2.0)])
    assert decision.verdict is Verdict.undecided
    assert "leaves no room for 3" in decision.sentence


def test_a_mechanism_under_another_name_is_not_told_equivalent() -> None:
    random = np.random.default_rng(0)
    both = {seed: random.random(200) < 0.8 for seed in range(5)}
    (decision,) = decide([Question(crossed(both, both), 3.0)])
    assert decision.verdict is Verdict.undecided
    assert "as one mechanism under two names is" in decision.sentence


def test_one_seed_has_mcnemars_test_and_decides_nothing() -> None:
    """Of 100 images, 12 are gained and 4 lost."""
    gained, lost = np.arange(100) < 12, np.arange(100) >= 96
    found = crossed({0: ~lost}, {0: ~gained})
    assert isinstance(found, OneSeed)
    assert found.estimate == pytest.approx(8)
    assert found.p_apart() == pytest.approx(stats.binomtest(12, 16).pvalue)
    centre, spread = 8 / 102, math.sqrt(17 - 64 / 102) / 102
    ends = (100 * (centre - 1.959964 * spread), 100 * (centre + 1.959964 * spread))
    assert found.interval() == pytest.approx(ends, rel=1e-6)
    assert decide([Question(found, 1.0)])[0].verdict is Verdict.undecided


def test_p_values_of_one_seed_are_of_the_side_that_they_ask_for() -> None:
    found = crossed({0: np.arange(100) < 60}, {0: np.arange(100) < 50})
    assert found.p_above(1.0) < 0.05 < found.p_below(1.0)
    even = crossed({0: np.arange(100) < 50}, {0: np.arange(100) >= 50})
    assert even.p_above(-30) < 0.05
    assert even.p_below(30) < 0.05


def test_seeds_of_other_images_are_refused() -> None:
    with pytest.raises(ValueError, match=r"seeds of \[3, 4\] images"):
        crossed({0: np.ones(3, bool)}, {0: np.ones(4, bool)})


def test_seeds_that_share_nothing_were_not_measured() -> None:
    assert math.isnan(crossed({0: np.ones(3, bool)}, {1: np.ones(3, bool)}).p_apart())
