"""Uniform noise against foolbox's, and its distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kattn_cli.attacks import AttackSettings
from kattn_cli.attacks.ball import distances
from kattn_cli.attacks.noise import perturb as noise

foolbox = pytest.importorskip("foolbox")


def test_succeeds_as_often_as_foolbox(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    model, images, labels = digits.model, digits.images.repeat(8, 1, 1, 1), digits.labels.repeat(8)
    theirs = foolbox.attacks.LinfAdditiveUniformNoiseAttack()
    expected = theirs.run(foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu"), images, labels, epsilon=0.5)
    found = noise(model, images, labels, AttackSettings("linf", 0.5, 0, 0), draws())
    right = [(model(noisy).argmax(1) == labels).double().mean() for noisy in (found, expected)]
    assert 0.3 < right[0] < 0.95
    assert abs(right[0] - right[1]) < 0.02


def test_linf_is_uniform_in_each_pixel(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    images = torch.full((500, 1, 8, 8), 0.5)
    change = (
        noise(digits.model, images, digits.labels[:1].expand(500), AttackSettings("linf", 0.2, 0, 0), draws()) - images
    )
    shares = torch.histc(change / 0.2, bins=10, min=-1, max=1) / change.numel()
    torch.testing.assert_close(shares, torch.full((10,), 0.1), rtol=0, atol=0.01)


def test_l2_is_uniform_in_the_ball(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    """The share of draws within r of the image is (r/ε)^d, here d = 4, and no direction is favoured."""
    images = torch.full((20000, 1, 2, 2), 0.5)
    labels = digits.labels[:1].expand(20000)
    found = noise(digits.model, images, labels, AttackSettings("l2", 0.2, 0, 0), draws())
    volume = (distances(found, images)["l2"] / 0.2) ** 4
    shares = torch.histc(volume, bins=10, min=0, max=1) / 20000
    torch.testing.assert_close(shares, torch.full((10,), 0.1, dtype=torch.float64), rtol=0, atol=0.01)
    spread = torch.cov((found - images).flatten(1).T)
    torch.testing.assert_close(spread / spread.trace(), torch.eye(4) / 4, rtol=0, atol=0.01)
