"""What is asked for becomes rows; what an attack cannot do is refused in one line."""

from __future__ import annotations

import math

import pytest

from kattn_cli.attacks import ATTACKS
from kattn_cli.commands.attack.plan import Asked, plan
from kattn_cli.errors import KattnError


def summary(asked: Asked) -> list[tuple[str, str, float, int, float]]:
    return [
        (one.attack, one.settings.norm, one.settings.epsilon, one.settings.steps, one.settings.relative_step)
        for one in plan(asked)
    ]


def test_defaults_are_the_paper_s() -> None:
    """RPC-Attention, Appendix A.2."""
    found = summary(Asked(list(ATTACKS), named=False))
    six = [i / 255 for i in range(1, 7)]
    assert [row for row in found if row[0] == "pgd"] == [("pgd", "linf", epsilon, 20, 0.15) for epsilon in six]
    assert [row[2] for row in found if row[0] == "fgsm"] == six
    assert ("spsa", "linf", 0.1, 40, 0.1) in found
    assert [row[:4] for row in found if row[0] == "cw"] == [("cw", "l2", math.inf, 1000)]
    assert [row[:3] for row in found if row[0] == "autoattack"] == [("autoattack", "linf", 1 / 255)]
    assert [row[1] for row in found if row[0] == "sld"] == ["l1"]


def test_options_reach_those_that_have_them() -> None:
    asked = Asked(["pgd", "fgsm"], budgets={"linf": [0.1]}, steps=7, relative_step=0.5, restarts=3)
    pgd, fgsm = plan(asked)
    assert (pgd.settings.steps, pgd.settings.relative_step, pgd.restarts) == (7, 0.5, 3)
    assert (fgsm.settings.steps, fgsm.settings.relative_step, fgsm.restarts) == (1, 1.0, 1)
    assert pgd.settings.epsilon == fgsm.settings.epsilon == 0.1


def test_all_leaves_out_those_that_lack_the_norm_or_a_target() -> None:
    found = plan(Asked(list(ATTACKS), named=False, norm="l2", budgets={"l2": [0.5]}))
    assert {one.attack for one in found} == {name for name, attack in ATTACKS.items() if "l2" in attack.norms}
    assert {one.settings.norm for one in found} == {"l2"}
    found = plan(Asked(list(ATTACKS), named=False, targeted=True))
    assert {one.attack for one in found} == {name for name, attack in ATTACKS.items() if attack.can_target}
    assert all(one.settings.targeted for one in found)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            Asked(["pgd", "sld"], norm="l2", budgets={"l2": [1]}),
            "--norm l2: does not apply to sld; it does to pgd, fgsm",
        ),
        (Asked(["noise", "pgd"], targeted=True), "--targeted: does not apply to noise; it does to pgd, fgsm"),
        (Asked(["fgsm"], restarts=2), "--restarts: does not apply to fgsm; it does to pgd"),
        (Asked(["fgsm", "noise"], steps=5), "--steps: does not apply to fgsm, noise; it does to pgd"),
        (Asked(["pgd"], norm="l2"), "pgd --norm l2: has no usual budget; give one with --epsilon-l2"),
        (
            Asked(["pgd"], budgets={"l1": [10]}),
            "--epsilon-l1: none of the attacks asked for is in that norm (pgd linf)",
        ),
    ],
)
def test_faults(asked: Asked, told: str) -> None:
    with pytest.raises(KattnError) as error:
        plan(asked)
    assert str(error.value).startswith(told)


def test_files_differ_with_what_is_measured_and_how() -> None:
    one, other = plan(Asked(["pgd"], budgets={"linf": [1 / 255, 2 / 255]}))
    here = {"weights": "a", "seed": 0}
    assert one.stem(here).startswith("pgd_linf_0.0039216_")
    assert one.stem(here) == one.stem(dict(here))
    assert (
        len({one.stem(here), other.stem(here), one.stem({**here, "seed": 1}), one.stem({**here, "weights": "b"})}) == 4
    )
