"""A linear model of two classes, on which the best attack of each norm is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kattn_cli.attacks import ATTACKS, AttackSettings
from kattn_cli.attacks.ball import distances

EPSILON = 0.2


@pytest.fixture
def weight() -> Tensor:
    return torch.randn(48, dtype=torch.float64)


@pytest.fixture
def images() -> Tensor:
    return 0.5 + 0.2 * (torch.rand(10, 3, 4, 4, dtype=torch.float64) - 0.5)


def logits(images: Tensor, weight: Tensor) -> Tensor:
    """Class 0 leads by w · (x - ½) + 0.5, image by image."""
    lead = (images - 0.5).flatten(1) @ weight + 0.5
    return torch.stack([lead / 2, -lead / 2], dim=1)


@pytest.mark.parametrize("name", ["fgsm", "pgd"])
def test_worst_case_in_linf(name: str, weight: Tensor, images: Tensor, draws: Callable[..., torch.Generator]) -> None:
    """x - ε sign(w), which takes ε‖w‖₁ from the lead."""
    settings = AttackSettings("linf", EPSILON, 20, 0.15)
    labels = torch.zeros(10, dtype=torch.int64)
    found = ATTACKS[name].perturb(lambda seen: logits(seen, weight), images, labels, settings, draws())
    torch.testing.assert_close(found, images - EPSILON * weight.sign().view(3, 4, 4), rtol=0, atol=1e-12)
    lost = (logits(images, weight) - logits(found, weight)) @ torch.tensor([1.0, -1.0], dtype=torch.float64)
    torch.testing.assert_close(lost, EPSILON * weight.abs().sum().expand(10))


@pytest.mark.parametrize(("name", "share"), [("fgsm", 1.0), ("pgd", 0.995)])
def test_worst_case_in_l2(
    name: str, share: float, weight: Tensor, images: Tensor, draws: Callable[..., torch.Generator]
) -> None:
    """It takes ε‖w‖₂ from the lead; PGD, from a random start, within half a per cent after 60 steps."""
    settings = AttackSettings("l2", EPSILON, 60, 0.15)
    labels = torch.zeros(10, dtype=torch.int64)
    found = ATTACKS[name].perturb(lambda seen: logits(seen, weight), images, labels, settings, draws())
    lost = (logits(images, weight) - logits(found, weight)) @ torch.tensor([1.0, -1.0], dtype=torch.float64)
    best = EPSILON * weight.norm()
    assert (lost <= best + 1e-12).all()
    assert (lost >= share * best - 1e-12).all()


@pytest.mark.parametrize("targeted", [False, True])
def test_smallest_perturbation_in_l2(
    weight: Tensor, images: Tensor, draws: Callable[..., torch.Generator], targeted: bool
) -> None:
    """The lead over ‖w‖₂."""
    weight, images = weight.float(), images.float()
    labels = torch.full((10,), int(targeted))
    lead = logits(images, weight) @ torch.tensor([1.0, -1.0])
    assert (lead > 0).any()
    settings = AttackSettings("l2", math.inf, 400, 0.003, targeted)
    found = ATTACKS["cw"].perturb(lambda seen: logits(seen, weight), images, labels, settings, draws())
    far = distances(found, images)["l2"]
    expected = (lead / weight.norm()).clamp(min=0).double()
    torch.testing.assert_close(far, expected, rtol=0.02, atol=1e-4)
