"""Attacks against foolbox and against closed forms."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn

from kattn_cli.attacks import ATTACKS
from kattn_cli.attacks.fgsm import fgsm
from kattn_cli.attacks.noise import noise
from kattn_cli.attacks.pgd import pgd

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import foolbox

EPSILON = 0.1


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    hidden = nn.Sequential(nn.Flatten(), nn.Linear(48, 32), nn.GELU(), nn.Linear(32, 5))
    return hidden.double().eval().requires_grad_(False)


@pytest.fixture
def images() -> Tensor:
    torch.manual_seed(1)
    return torch.rand(20, 3, 4, 4, dtype=torch.float64)


@pytest.fixture
def labels() -> Tensor:
    return torch.arange(20) % 5


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_fgsm_equals_foolbox(model: nn.Module, images: Tensor, labels: Tensor) -> None:
    theirs = foolbox.attacks.LinfFastGradientAttack(random_start=False)
    expected = theirs.run(foolbox.PyTorchModel(model, bounds=(0, 1)), images, labels, epsilon=EPSILON)
    found = fgsm(model, images, labels, epsilon=EPSILON, generator=generator())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 5, 20])
def test_pgd_equals_foolbox(model: nn.Module, images: Tensor, labels: Tensor, steps: int) -> None:
    theirs = foolbox.attacks.LinfPGD(rel_stepsize=0.15, steps=steps, random_start=False)
    expected = theirs.run(foolbox.PyTorchModel(model, bounds=(0, 1)), images, labels, epsilon=EPSILON)
    found = pgd(model, images, labels, epsilon=EPSILON, generator=generator(), steps=steps, random_start=False)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ATTACKS)
def test_stays_in_the_ball_and_in_the_pixels(name: str, model: nn.Module, images: Tensor, labels: Tensor) -> None:
    for epsilon in (1 / 255, 0.3, 1.0):
        found = ATTACKS[name].perturb(model, images, labels, epsilon=epsilon, generator=generator())
        assert (found - images).abs().max() <= epsilon + 1e-12
        assert found.min() >= 0
        assert found.max() <= 1
        assert not found.requires_grad


@pytest.mark.parametrize("name", ATTACKS)
def test_same_seed_same_images(name: str, model: nn.Module, images: Tensor, labels: Tensor) -> None:
    first, second = (
        ATTACKS[name].perturb(model, images, labels, epsilon=EPSILON, generator=generator()) for _ in range(2)
    )
    assert torch.equal(first, second)


def test_linear_model_has_a_closed_form() -> None:
    """Two classes and weights ±w: the worst image is x ∓ ε sign(w), and both attacks find it."""
    torch.manual_seed(0)
    weight = torch.randn(12, dtype=torch.float64)
    linear = nn.Linear(12, 2, bias=False).double().requires_grad_(False)
    linear.weight.copy_(torch.stack([weight, -weight]))
    images = torch.rand(8, 12, dtype=torch.float64) * 0.5 + 0.25
    labels = torch.zeros(8, dtype=torch.int64)
    worst = images - EPSILON * weight.sign()
    for attack in (fgsm, pgd):
        found = attack(linear, images, labels, epsilon=EPSILON, generator=generator())
        torch.testing.assert_close(found, worst, rtol=0, atol=1e-12)


def test_pgd_hurts_more_than_fgsm_and_noise(model: nn.Module, images: Tensor) -> None:
    labels = model(images).argmax(-1)
    left = {
        attack.__name__: (
            model(attack(model, images, labels, epsilon=EPSILON, generator=generator())).argmax(-1) == labels
        ).sum()
        for attack in (pgd, fgsm, noise)
    }
    assert left["pgd"] <= left["fgsm"] < left["noise"]


def test_defaults_are_the_papers() -> None:
    assert (ATTACKS["pgd"].steps, ATTACKS["pgd"].relative_step) == (20, 0.15)
