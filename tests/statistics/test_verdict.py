"""The five verdicts, and that a family's errors are those of one test."""

from __future__ import annotations

import math

import pytest

from kattn_cli.statistics.effect import StudentEffect
from kattn_cli.statistics.verdict import Question, Verdict, decide


def effect(estimate: float, standard_error: float, df: float = 20, seeds: int = 10) -> StudentEffect:
    return StudentEffect(estimate, seeds, standard_error=standard_error, df=df)


@pytest.mark.parametrize(
    ("estimate", "standard_error", "verdict"),
    [
        (3.0, 0.5, Verdict.better),
        (-3.0, 0.5, Verdict.worse),
        (0.3, 0.3, Verdict.equivalent),
        (0.5, 0.1, Verdict.equivalent),
        (0.0, 1.0, Verdict.excluded),
        (1.0, 2.0, Verdict.undecided),
    ],
)
def test_each_verdict(estimate: float, standard_error: float, verdict: Verdict) -> None:
    (found,) = decide([Question(effect(estimate, standard_error), margin=1.0, published=4.0)])
    assert found.verdict is verdict


def test_lower_is_better_turns_the_side_and_not_the_test() -> None:
    (found,) = decide([Question(effect(-3.0, 0.5), margin=1.0, lower_is_better=True)])
    assert found.verdict is Verdict.better


def test_what_is_within_the_margin_and_not_0_is_equivalent_and_its_sentence_says_the_side() -> None:
    (found,) = decide([Question(effect(0.5, 0.1), margin=1.0, unit="points")])
    assert found.verdict is Verdict.equivalent
    assert "it is on the better side of 0" in found.sentence
    assert "lies within ± 1 (two one-sided tests" in found.sentence


def test_a_question_that_nothing_was_measured_for_is_not_counted() -> None:
    nothing = StudentEffect(math.nan, 0, nothing="no seed has both")
    alone, _ = decide([Question(effect(3.0, 1.0), 1.0), Question(nothing, 1.0)])
    assert alone.p_apart == pytest.approx(decide([Question(effect(3.0, 1.0), 1.0)])[0].p_apart)


def test_both_hypotheses_of_a_question_cost_one_question() -> None:
    """That an effect is 0 and that it is outside the margin cannot both be true (Shaffer, 1986)."""
    alone = Question(effect(0.5, 0.2, df=1e6), 1.0)
    (found,) = decide([alone])
    assert (found.p_apart, found.p_within) == pytest.approx((alone.p_values[0], alone.p_values[1]))
    both = decide([alone, Question(effect(0.0, 1.0), 1.0)])
    assert both[0].p_apart == pytest.approx(2 * alone.p_values[0])
    assert both[0].p_within == pytest.approx(2 * alone.p_values[1])
