"""PGD against foolbox, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kattn_cli.attacks import AttackSettings, Norm
from kattn_cli.attacks.ball import distances
from kattn_cli.attacks.pgd import perturb as pgd

foolbox = pytest.importorskip("foolbox")
THEIRS = {"linf": foolbox.attacks.LinfPGD, "l2": foolbox.attacks.L2PGD}
EPSILON: dict[Norm, float] = {"linf": 0.1, "l2": 0.7}


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("steps", [1, 5, 20])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_equals_foolbox(colours: Any, draws: Callable[..., torch.Generator], norm: Norm, steps: int, targeted: bool):
    model, images, labels = colours
    criterion = (foolbox.criteria.TargetedMisclassification if targeted else foolbox.criteria.Misclassification)(labels)
    theirs = THEIRS[norm](rel_stepsize=0.15, steps=steps, random_start=False)
    seen = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    expected = theirs.run(seen, images, criterion, epsilon=EPSILON[norm])
    settings = AttackSettings(norm, EPSILON[norm], steps, 0.15, targeted)
    found = pgd(model, images, labels, settings, draws(), random_start=False)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_succeeds_as_often_as_foolbox_from_a_random_start(
    digits: Any, draws: Callable[..., torch.Generator], norm: Norm
) -> None:
    model, images, labels = digits
    seen = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    theirs = THEIRS[norm](rel_stepsize=0.15, steps=20, random_start=True)
    epsilon = {"linf": 0.1, "l2": 0.5}[norm]
    expected = theirs.run(seen, images, labels, epsilon=epsilon)
    found = pgd(model, images, labels, AttackSettings(norm, epsilon, 20, 0.15), draws())
    right = [(model(adversarial).argmax(1) == labels).double().mean() for adversarial in (found, expected)]
    assert 0.02 < right[0] < 0.9
    assert abs(right[0] - right[1]) < 0.02


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_starts_in_the_ball(digits: Any, draws: Callable[..., torch.Generator], norm: Norm) -> None:
    """Without a step, images moved: in most a pixel by nearly ε (ℓ∞), all but the shell of the ball left empty (ℓ2)."""
    images = torch.full((200, 1, 8, 8), 0.5)
    start = pgd(digits.model, images, digits.labels[:200], AttackSettings(norm, 0.3, 0, 0.15), draws())
    far = distances(start, images)[norm] / 0.3
    assert far.max() <= 1 + 1e-6
    assert far.mean() > 0.95


def test_unbounded_leaves_nothing_right(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    found = pgd(digits.model, digits.images, digits.labels, AttackSettings("linf", 1.0, 40, 0.1), draws())
    assert not (digits.model(found).argmax(1) == digits.labels).any()


@pytest.mark.slow
def test_costs_as_much_as_its_passes(draws: Callable[..., torch.Generator]) -> None:
    """PGD-20 on 1,000 images of digits' size: within 1.2 × of the time of 20 forward-backward passes."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.GELU(), nn.Conv2d(32, 32, 3, padding=1), nn.Flatten(), nn.Linear(2048, 10)
    )
    model.eval().requires_grad_(False)
    images, labels = torch.rand(1000, 1, 8, 8), torch.arange(1000) % 10

    def passes() -> None:
        for _ in range(20):
            seen = images.detach().requires_grad_()
            torch.autograd.grad(F.cross_entropy(model(seen), labels, reduction="sum"), seen)

    def attack() -> None:
        pgd(model, images, labels, AttackSettings("linf", 6 / 255, 20, 0.15), draws())

    taken: dict[Callable[[], None], list[float]] = {passes: [], attack: []}
    for _ in range(7):
        for run, times in taken.items():
            started = time.process_time()
            run()
            times.append(time.process_time() - started)
    ratio = min(taken[attack]) / min(taken[passes])
    print(f"PGD-20 over 20 forward-backward passes: {ratio:.3f}")
    assert ratio < 1.2
