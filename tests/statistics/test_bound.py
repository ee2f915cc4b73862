"""Numbers against bounds, by hand."""

from __future__ import annotations

import math

import pytest

from kattn_cli.statistics.bound import Bounded, decide_bounds
from kattn_cli.statistics.effect import StudentEffect
from kattn_cli.statistics.verdict import Verdict, across


def number(estimate: float, bound: float, below: bool = False, seeds: int = 5) -> Bounded:
    """By a standard error of 1 with 8 degrees of freedom: t = 2.306 at 5 %, 2.752 at 2.5 %."""
    effect = StudentEffect(estimate, seeds, standard_error=1.0, df=8)
    return Bounded(effect, lower_is_better=below, bound=bound)


@pytest.mark.parametrize(
    ("estimate", "bound", "below", "verdict"),
    [
        (3.0, 0.0, False, Verdict.holds),
        (3.0, 0.0, True, Verdict.does_not_hold),
        (-3.0, 0.0, False, Verdict.does_not_hold),
        (3.0, 5.4, True, Verdict.holds),
        (3.0, 0.8, False, Verdict.undecided),
    ],
)
def test_the_side_of_the_bound(estimate: float, bound: float, below: bool, verdict: Verdict) -> None:
    (found,) = decide_bounds([number(estimate, bound, below)])
    assert found.verdict is verdict


def test_holm_over_the_numbers_of_a_family() -> None:
    """2.5 standard errors are told alone, at 5 %, and not as one of two, at 2.5 %."""
    assert decide_bounds([number(2.5, 0)])[0].verdict is Verdict.holds
    both = decide_bounds([number(2.5, 0), number(0.1, 0)])
    assert [one.verdict for one in both] == [Verdict.undecided] * 2
    assert both[0].p_value == pytest.approx(2 * decide_bounds([number(2.5, 0)])[0].p_value)


def test_two_seeds_say_nothing_and_sentences_say_why() -> None:
    (few,) = decide_bounds([number(9, 0, seeds=2)])
    assert few.verdict is Verdict.undecided
    assert math.isnan(few.p_value)
    assert few.sentence.endswith("of 2 seeds, to be above 0; it takes 3 seeds.")
    (told,) = decide_bounds([number(-3, 0)])
    assert told.sentence == "Does not hold: −3 [−5.31, −0.694] of 5 seeds, to be above 0; p = 0.017."


def test_a_page_takes_back_what_many_families_do_not_bear() -> None:
    """p = 0.037 among ten families, of which nine tell nothing."""
    families = [decide_bounds([number(2.5, 0)]), *(decide_bounds([number(0.1, 0)]) for _ in range(9))]
    assert {one.verdict for family in across(families) for one in family} == {Verdict.undecided}
    assert across(families[:1])[0][0].verdict is Verdict.holds
