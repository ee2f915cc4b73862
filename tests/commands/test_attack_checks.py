"""Checks on numbers under attack: each can hold, fail, and lack what it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from kattn_cli.commands.attack import checks
from kattn_cli.commands.attack.checks import Check


def rows(*measured: tuple[str, float, float], **columns: Any) -> pd.DataFrame:
    """Rows of ``(attack, ε in 1/255, top-1)``."""
    shared = {
        "norm": "linf",
        "epsilon_units": "pixels in [0, 1]",
        "steps": 20,
        "restarts": 1,
        "targeted": False,
        "images": 100,
        "seed": 0,
        "clean_top1": 90.0,
        **columns,
    }
    return pd.DataFrame([{**shared, "attack": a, "epsilon": e / 255, "top1": top1} for a, e, top1 in measured])


@pytest.mark.parametrize(
    ("check", "measured", "holds", "evidence"),
    [
        (checks.falls_with_epsilon, [("pgd", 2, 60), ("pgd", 1, 80)], True, "pgd 90.0 → 80.0 → 60.0"),
        (checks.falls_with_epsilon, [("fgsm", 1, 60), ("fgsm", 2, 62)], False, "fgsm 90.0 → 60.0 → 62.0"),
        (checks.falls_with_epsilon, [("pgd", 1, 95), ("pgd", 2, 40)], False, "pgd 90.0 → 95.0 → 40.0"),
        (checks.falls_with_epsilon, [("sld", 1, 60), ("sld", 2, 70)], False, "sld 90.0 → 60.0 → 70.0"),
        (checks.falls_with_epsilon, [("pgd", 1, 60), ("noise", 1, 60), ("noise", 2, 65)], None, "not measured"),
        (
            checks.iterative_beats_single_step,
            [("pgd", 1, 70), ("fgsm", 1, 71), ("pgd", 2, 50), ("fgsm", 2, 50)],
            True,
            "2/255: pgd 50.0, fgsm 50.0",
        ),
        (checks.iterative_beats_single_step, [("pgd", 1, 70), ("fgsm", 1, 60)], False, "1/255: pgd 70.0, fgsm 60.0"),
        (checks.iterative_beats_single_step, [("pgd", 1, 70), ("fgsm", 2, 60)], None, "not measured"),
        (
            checks.white_box_beats_black_box,
            [("pgd", 1, 70), ("square", 1, 60), ("autoattack", 1, 55)],
            True,
            "1/255: autoattack 55.0, square 60.0",
        ),
        (
            checks.white_box_beats_black_box,
            [("pgd", 1, 70), ("square", 1, 60), ("noise", 1, 89)],
            False,
            "1/255: pgd 70.0, square 60.0",
        ),
        (
            checks.white_box_beats_black_box,
            [("sld", 1, 70), ("square", 1, 60)],
            False,
            "1/255: sld 70.0, square 60.0",
        ),
        (checks.white_box_beats_black_box, [("fgsm", 1, 70), ("noise", 1, 60)], None, "not measured"),
    ],
)
def test_verdicts(
    check: Callable[[pd.DataFrame], Check], measured: list[tuple[str, float, float]], holds: bool, evidence: str
) -> None:
    found = check(rows(*measured))
    assert (found.holds, found.evidence) == (holds, evidence)


def test_only_like_is_compared_with_like() -> None:
    """Neither other images, nor other units, nor other numbers of steps."""
    table = pd.concat([rows(("pgd", 1, 70)), rows(("fgsm", 1, 60), images=50)])
    assert checks.iterative_beats_single_step(table).holds is None
    table = pd.concat([rows(("pgd", 1, 70)), rows(("fgsm", 1, 60), epsilon_units="normalised")])
    assert checks.iterative_beats_single_step(table).holds is None
    table = pd.concat([rows(("pgd", 1, 70)), rows(("pgd", 2, 90), steps=1)])
    assert checks.falls_with_epsilon(table).holds is None


def test_targeted_attacks_are_not_judged() -> None:
    found = checks.verdicts(rows(("pgd", 1, 80), ("pgd", 2, 60), targeted=True))
    assert [one.holds for one in found] == [None, None, None]


def test_unbounded() -> None:
    assert checks.reaches_zero(0.0, 128, 50) == Check(
        "unbounded PGD reaches 0", True, "pgd ε = 1, 50 steps: 0.0 % on 128 images"
    )
    assert not checks.reaches_zero(0.8, 128, 50).holds


def test_restarts() -> None:
    found = checks.restarts_converge([80.0, 78.0, 77.0, 76.0, 75.0], 100, 4 / 255)
    assert found.holds
    assert found.evidence == "pgd 4/255: 80.0 → 78.0 → 77.0 → 76.0 → 75.0 after 1 to 5 starts, 100 images"
    assert not checks.restarts_converge([80.0, 78.0, 74.0], 100, 4 / 255).holds


def test_epsilon_is_the_median_of_those_in_pixels() -> None:
    """Normalised units are about four times as large; of 1, 4 and 6/255 in pixels the median is 4/255."""
    in_pixels = rows(("pgd", 6, 1), ("pgd", 1, 1), ("pgd", 4, 1), ("fgsm", 16, 1))
    normalised = rows(*(("pgd", epsilon, 1.0) for epsilon in (20, 24, 28)), epsilon_units="normalised")
    assert checks._epsilon(pd.concat([in_pixels, normalised])) == pytest.approx(4 / 255)
    assert checks._epsilon(normalised) == checks.EPSILON
    in_l2 = rows(("pgd", 100, 1), norm="l2")
    assert checks._epsilon(pd.concat([in_pixels, in_l2])) == pytest.approx(4 / 255)


def test_what_is_ordered_differs_in_the_attack_alone() -> None:
    """PGD on the best weights beside FGSM on the last says nothing of either; nor does another seed."""
    for other in ({"checkpoint": "last"}, {"seed": 1}, {"an_option": "on"}):
        shared = {"checkpoint": "best", "seed": 0, "an_option": ""}
        table = pd.concat(
            [rows(("pgd", 1, 70), **shared), rows(("fgsm", 1, 60), ("noise", 1, 60), **{**shared, **other})]
        )
        assert checks.iterative_beats_single_step(table).holds is None, other
        assert checks.white_box_beats_black_box(table).holds is None, other
    own = pd.concat([rows(("pgd", 1, 59), step_share=0.15), rows(("fgsm", 1, 60), steps=1, step_share=1.0)])
    assert checks.iterative_beats_single_step(own).holds, "steps and their size are the attack's own"


def test_accuracy_falls_along_one_measurement() -> None:
    """Two sizes of step are two curves, each of which falls."""
    small, large = (
        rows(("pgd", 1, one), ("pgd", 2, two), step_share=share) for one, two, share in ((80, 70, 0.1), (60, 50, 0.2))
    )
    assert checks.falls_with_epsilon(pd.concat([small, large])).holds
    assert not checks.falls_with_epsilon(pd.concat([small, large]).assign(step_share=0.1)).holds
