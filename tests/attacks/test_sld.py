"""Sparse ℓ1 descent against foolbox's, whose projection leaves the ball and is replaced here by a plain one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings
from kattn_cli.attacks.ball import check_bounds
from kattn_cli.attacks.sld import onto_l1_ball
from kattn_cli.attacks.sld import perturb as sld

foolbox = pytest.importorskip("foolbox")
eagerpy = pytest.importorskip("eagerpy")


def plain_projection(change: np.ndarray, radius: float) -> np.ndarray:
    """Nearest point of the ℓ1 ball: the shrinkage that leaves ``radius``, by bisection."""
    if np.abs(change).sum() <= radius:
        return change
    low, high = 0.0, float(np.abs(change).max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(np.abs(change) - middle, 0).sum() > radius else (low, middle)
    return np.sign(change) * np.maximum(np.abs(change) - high, 0)


class Projected(foolbox.attacks.SparseL1DescentAttack):  # type: ignore[name-defined]
    """foolbox's, with a projection that is one."""

    def project(self, x: Any, x0: Any, epsilon: float) -> Any:
        moved = np.stack([plain_projection(change, epsilon) for change in (x.raw - x0.raw).numpy()])
        return x0 + eagerpy.astensor(torch.from_numpy(moved))


def test_projection_is_the_nearest_point() -> None:
    change = torch.randn(40, 3, 5, 5, dtype=torch.float64) * torch.logspace(-3, 1, 40).view(-1, 1, 1, 1)
    change[0], change[1, :, 1:] = 0, 0
    expected = torch.tensor(np.stack([plain_projection(each.numpy(), 2.0) for each in change]))
    torch.testing.assert_close(onto_l1_ball(change, 2.0), expected, rtol=0, atol=1e-10)
    assert torch.equal(onto_l1_ball(change, 2.0)[0], change[0])


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("quantile", [0.99, 0.9])
def test_equals_foolbox_with_a_projection(
    colours: Any,
    draws: Callable[..., torch.Generator],
    monkeypatch: pytest.MonkeyPatch,
    epsilon: float,
    quantile: float,
) -> None:
    monkeypatch.setattr("kattn_cli.attacks.sld.QUANTILE", quantile)
    model, images, labels = colours
    theirs = Projected(quantile=quantile, rel_stepsize=0.1, steps=20)
    seen = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    expected = theirs.run(seen, images, labels, epsilon=epsilon)
    found = sld(model, images, labels, AttackSettings("l1", epsilon, 20, 0.1), draws())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_succeeds_as_often_as_foolbox(digits: Any, draws: Callable[..., torch.Generator], epsilon: float) -> None:
    """As it is, though it goes up to 5 % farther."""
    model, images, labels = digits
    theirs = foolbox.attacks.SparseL1DescentAttack(quantile=0.99, rel_stepsize=0.1, steps=20)
    settings = AttackSettings("l1", epsilon, 20, 0.1)
    expected = theirs.run(foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu"), images, labels, epsilon=epsilon)
    found = sld(model, images, labels, settings, draws())
    check_bounds("sld", found, images, settings)
    right = [(model(adversarial).argmax(1) == labels).double().mean() for adversarial in (found, expected)]
    assert 0.05 < right[0] < 0.8
    assert abs(right[0] - right[1]) < 0.02


def test_targeted_climbs_where_pixels_may_go(draws: Callable[..., torch.Generator]) -> None:
    """One white and one black pixel: towards the target only the black one can move, though its slope is less."""
    slopes = torch.tensor([3.0, 2.0, 0.0, 0.0])

    def model(images: Tensor) -> Tensor:
        score = images.flatten(1) @ slopes
        return torch.stack([torch.zeros_like(score), score], dim=1)

    images = torch.tensor([1.0, 0.0, 0.5, 0.5]).view(1, 1, 2, 2)
    found = sld(model, images, torch.tensor([1]), AttackSettings("l1", 0.4, 10, 0.1, targeted=True), draws())
    torch.testing.assert_close(found.flatten(), torch.tensor([1.0, 0.4, 0.5, 0.5]))
