"""What every attack keeps: bounds, determinism, silence, the state of everything it was not given."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kattn_cli.attacks import ATTACKS, AttackSettings, Norm
from kattn_cli.attacks.ball import check_bounds
from kattn_cli.errors import KattnError

EVERY = [(name, norm) for name, attack in ATTACKS.items() for norm in attack.norms]
BUDGETS: dict[Norm, float] = {"linf": 0.3, "l2": 2.0, "l1": 8.0}


def settings(name: str, norm: Norm, targeted: bool = False) -> AttackSettings:
    attack = ATTACKS[name]
    epsilon = BUDGETS[norm] if name != "cw" else attack.epsilons[0]
    rate = 0.1 if name == "cw" else attack.relative_step
    return AttackSettings(norm, epsilon, min(attack.steps, 200 if name == "square" else 30), rate, targeted)


def attacked(case: Any, name: str, norm: Norm, generator: torch.Generator, count: int = 8) -> Tensor:
    images, labels = case.images[:count].float(), case.labels[:count]
    return ATTACKS[name].perturb(case.model.float(), images, labels, settings(name, norm), generator)


@pytest.mark.parametrize("case", ["digits", "colours"])
@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize(("name", "norm"), EVERY)
def test_stays_in_bounds(
    request: pytest.FixtureRequest,
    draws: Callable[..., torch.Generator],
    name: str,
    norm: Norm,
    count: int,
    case: str,
) -> None:
    """Grey and colour images, alone and in batches; those given are left as they were."""
    made = request.getfixturevalue(case)
    before = made.images[:count].float().clone()
    found = attacked(made, name, norm, draws(), count)
    check_bounds(name, found, before, settings(name, norm))
    assert found.shape == before.shape
    assert found.dtype == torch.float32
    assert not found.requires_grad
    assert torch.equal(made.images[:count].float(), before)


@pytest.mark.parametrize(("name", "norm"), EVERY)
def test_depends_on_its_generator_alone(
    digits: Any, draws: Callable[..., torch.Generator], name: str, norm: Norm
) -> None:
    """The same images whatever the global generators, whose states are as before."""
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        states = torch.get_rng_state(), np.random.get_state(legacy=True), random.getstate()
        found.append(attacked(digits, name, norm, draws()))
        assert torch.equal(torch.get_rng_state(), states[0])
        assert str(np.random.get_state(legacy=True)) == str(states[1])
        assert random.getstate() == states[2]
    assert torch.equal(found[0], found[1])


@pytest.mark.parametrize(("name", "norm"), EVERY)
def test_says_nothing(
    digits: Any, draws: Callable[..., torch.Generator], capfd: pytest.CaptureFixture[str], name: str, norm: Norm
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attacked(digits, name, norm, draws())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.can_restart])
def test_restarts_draw_anew(digits: Any, draws: Callable[..., torch.Generator], name: str) -> None:
    norm = ATTACKS[name].norms[0]
    assert not torch.equal(attacked(digits, name, norm, draws(0)), attacked(digits, name, norm, draws(1)))


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.can_target])
def test_targets_are_reached(digits: Any, draws: Callable[..., torch.Generator], name: str) -> None:
    """Most images become the digit after theirs, which an untargeted attack makes of few."""
    attack, norm = ATTACKS[name], ATTACKS[name].norms[0]
    images, labels = digits.images[:40], digits.labels[:40]
    wanted = (labels + 1) % 10
    reached = []
    for aim, targeted in ((wanted, True), (labels, False)):
        found = attack.perturb(digits.model, images, aim, settings(name, norm, targeted), draws())
        reached.append(float((digits.model(found).argmax(1) == wanted).double().mean()))
    assert reached[0] > reached[1] + 0.2
    assert reached[0] > (0.5 if name not in ("fgsm", "square") else 0.2)


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if not attack.can_target])
def test_refuses_targets(digits: Any, draws: Callable[..., torch.Generator], name: str) -> None:
    aimed = AttackSettings("linf", 0.1, 1, 1, targeted=True)
    with pytest.raises(KattnError, match=f"^{name} --targeted: aims at no class"):
        ATTACKS[name].perturb(digits.model, digits.images, digits.labels, aimed, draws())


@pytest.mark.parametrize("name", ATTACKS)
def test_refuses_other_norms(digits: Any, draws: Callable[..., torch.Generator], name: str) -> None:
    norms = ATTACKS[name].norms
    for norm in set(BUDGETS) - set(norms):
        with pytest.raises(KattnError, match=f"^{name} --norm {norm}: expected {' or '.join(norms)}$"):
            ATTACKS[name].perturb(digits.model, digits.images, digits.labels, AttackSettings(norm, 0.1, 1, 1), draws())


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "cw"])
def test_refuses_infinite_budgets(digits: Any, draws: Callable[..., torch.Generator], name: str) -> None:
    boundless = AttackSettings(ATTACKS[name].norms[0], torch.inf, 1, 1)
    with pytest.raises(KattnError, match=f"^{name}: needs a finite ε; cw looks for the smallest perturbation$"):
        ATTACKS[name].perturb(digits.model, digits.images, digits.labels, boundless, draws())


@pytest.mark.parametrize(("name", "norm"), EVERY)
def test_takes_no_more_passes_than_it_says(
    digits: Any, draws: Callable[..., torch.Generator], name: str, norm: Norm
) -> None:
    """Forward passes of any image, and no gradient for a black-box attack."""
    count = 0

    def model(images: Tensor) -> Tensor:
        nonlocal count
        count += len(images)
        assert ATTACKS[name].white_box or not images.requires_grad
        return digits.model(images)

    chosen = settings(name, norm)
    ATTACKS[name].perturb(model, digits.images[:1], digits.labels[:1], chosen, draws())
    assert count <= ATTACKS[name].passes(chosen).forward
    assert ATTACKS[name].white_box == (ATTACKS[name].passes(chosen).backward > 0)


def test_order() -> None:
    assert list(ATTACKS) == ["pgd", "fgsm", "spsa", "sld", "cw", "noise", "autoattack", "square"]


@pytest.mark.parametrize(
    ("name", "norm", "epsilons", "steps", "step_size"),
    [
        ("pgd", "linf", [1 / 255, 2 / 255, 3 / 255, 4 / 255, 5 / 255, 6 / 255], 20, 0.15 / 255),
        ("fgsm", "linf", [1 / 255, 2 / 255, 3 / 255, 4 / 255, 5 / 255, 6 / 255], 1, 1 / 255),
        ("spsa", "linf", [0.1], 40, 0.01),
        ("sld", "l1", [10.0], 20, 1),
        ("cw", "l2", [torch.inf], 1000, 0.01),
        ("square", "linf", [1 / 255], 5000, 0),
    ],
)
def test_defaults_are_those_of_the_papers_or_of_cleverhans(
    name: str, norm: Norm, epsilons: list[float], steps: int, step_size: float
) -> None:
    card = ATTACKS[name]
    assert (card.norms[0], card.epsilons, card.steps) == (norm, pytest.approx(epsilons), steps)
    assert AttackSettings(norm, epsilons[0], steps, card.relative_step).step_size == pytest.approx(step_size)


def test_passes_of_cw() -> None:
    assert ATTACKS["cw"].passes(AttackSettings("l2", torch.inf, 1000, 0.01)) == (5001, 5000)


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import kattn_cli.attacks", {"torch", "numpy"}),
        (
            "from kattn_cli.attacks import ATTACKS; [a.perturb for a in ATTACKS.values()]",
            {"foolbox", "pyautoattack", "eagerpy", "scipy"},
        ),
    ],
)
def test_cards_need_no_torch_and_attacks_no_library_until_they_run(code: str, absent: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not absent & set(done.stdout.split())
