"""The five verdicts, and that a family's errors are those of one test."""

from __future__ import annotations

import math

import pytest

from kattn_cli.statistics.effect import StudentEffect
from kattn_cli.statistics.power import Components
from kattn_cli.statistics.verdict import Question, Verdict, across, decide


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


def test_without_a_margin_nothing_is_equivalent() -> None:
    (found,) = decide([Question(effect(0.1, 0.1))])
    assert found.verdict is Verdict.undecided
    assert math.isnan(found.p_within)
    assert found.sentence == "Undecided: +0.1 [−0.109, +0.309] of 10 seeds."
    assert decide([Question(effect(3.0, 0.1))])[0].verdict is Verdict.better


def test_a_margin_is_above_0() -> None:
    with pytest.raises(ValueError, match="a margin is above 0, not -1"):
        Question(effect(0.0, 1.0), -1.0)


def test_what_is_undecided_says_what_could_have_been_seen_and_what_it_takes() -> None:
    pilot = StudentEffect(0.3, 5, standard_error=math.sqrt(2 / 5), df=4, components=Components(2.0))
    (found,) = decide([Question(pilot, 1.0, unit="points")])
    seen, seeds = found.smallest_seen, found.seeds_needed
    assert found.verdict is Verdict.undecided
    assert Components(2.0).power(seen, 5) == pytest.approx(0.8, abs=1e-4)
    assert seeds == 18
    assert found.sentence == (
        f"Undecided: +0.3 points [−1.46, +2.06] of 5 seeds; an effect of {seen:.3g} points could have been seen "
        "(power 0.8); one of 1 takes 18 seeds."
    )


def test_two_seeds_decide_nothing_however_far_apart() -> None:
    (found,) = decide([Question(effect(30.0, 0.1, seeds=2), 1.0)])
    assert found.verdict is Verdict.undecided
    assert "2 seeds say nothing of other seeds" in found.sentence


def test_over_families_what_one_alone_would_tell_is_taken_back() -> None:
    """Ten families; one is told at 0.03, which is too much for the first of ten."""
    told = decide([Question(effect(2.3, 1.0, df=30), 1.0)])
    nothing = [decide([Question(effect(0.0, 1.0, df=30), 1.0)]) for _ in range(9)]
    assert told[0].verdict is Verdict.better
    (found, *_), *rest = across([told, *nothing])
    assert found.verdict is Verdict.undecided
    assert found.alone is Verdict.better
    assert "better in its own family, and not among all families of the page" in found.sentence
    strong = decide([Question(effect(9.0, 1.0, df=30), 1.0)])
    assert across([strong, *nothing])[0][0].verdict is Verdict.better
    assert [one.verdict for (one,) in rest] == [Verdict.undecided] * 9


def test_the_published_effect_is_not_excluded_by_a_scale_that_ends_before_it() -> None:
    room = StudentEffect(0.1, 5, 2000, standard_error=0.01, df=4, room=0.2)
    assert math.isnan(decide([Question(room, 1.0, published=3.0)])[0].p_excluded)
