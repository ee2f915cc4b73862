"""Carlini and Wagner's attack against a plain version, and where none is found or ε is finite."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings
from kattn_cli.attacks.ball import Model, distances
from kattn_cli.attacks.cw import perturb as cw

STEPS = 100
RATE = 0.05


def plain(model: Model, images: Tensor, labels: Tensor, targeted: bool) -> tuple[Tensor, Tensor]:
    """The ℓ2 attack of the paper, §V, without an early end: the nearest images and their distances, inf for none."""
    count = len(images)
    const, low = torch.full((count,), 1e-2), torch.zeros(count)
    high = torch.full((count,), math.inf)
    best, nearest = images.clone(), torch.full((count,), math.inf)
    start = torch.atanh((2 * images - 1) * 0.999999)
    for _ in range(5):
        moved = start.clone().requires_grad_()
        optimizer = torch.optim.Adam([moved], lr=RATE)
        hit = torch.zeros(count, dtype=torch.bool)
        for _ in range(STEPS):
            now = (moved.tanh() + 1) / 2
            logits = model(now)
            own = logits[torch.arange(count), labels]
            other = logits.scatter(1, labels[:, None], -math.inf).amax(1)
            gap = (other - own) if targeted else (own - other)
            squared = (now - images).flatten(1).square().sum(1)
            optimizer.zero_grad()
            (squared + const * gap.clamp(min=0)).sum().backward()
            optimizer.step()
            better = (gap < 0) & (squared.sqrt() < nearest)
            hit |= gap < 0
            best[better], nearest[better] = now.detach()[better], squared.detach().sqrt()[better]
        high, low = torch.where(hit, const, high), torch.where(hit, low, const)
        const = torch.where(high.isinf(), const * 10, (low + high) / 2)
    return best, nearest


@pytest.mark.parametrize("targeted", [False, True])
def test_finds_what_a_plain_version_finds(digits: Any, draws: Callable[..., torch.Generator], targeted: bool) -> None:
    model, images = digits.model, digits.images[:24]
    labels = (digits.labels[:24] + targeted) % 10
    _, expected = plain(model, images, labels, targeted)
    found = cw(model, images, labels, AttackSettings("l2", math.inf, STEPS, RATE, targeted), draws())
    success = (model(found).argmax(1) == labels) == targeted
    assert success.all()
    assert expected.isfinite().all()
    ours = distances(found, images)["l2"]
    assert float(ours.mean() / expected.mean()) == pytest.approx(1, abs=0.03)
    assert found.min() >= 0
    assert found.max() <= 1


def test_finite_budget_keeps_the_clean_image_beyond_it(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    model, images, labels = digits.model, digits.images[:20], digits.labels[:20]
    unbounded = cw(model, images, labels, AttackSettings("l2", math.inf, 60, RATE), draws())
    far = distances(unbounded, images)["l2"]
    epsilon = float(far.median())
    found = cw(model, images, labels, AttackSettings("l2", epsilon, 60, RATE), draws())
    inside = far <= epsilon
    assert 5 <= int(inside.sum()) <= 15
    assert torch.equal(found[inside], unbounded[inside])
    assert torch.equal(found[~inside], images[~inside])


def test_none_found_is_the_clean_image(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    def stubborn(images: Tensor) -> Tensor:
        return images.flatten(1)[:, :2] * 1e-6 + torch.tensor([1.0, 0.0])

    images = digits.images[:4]
    found = cw(stubborn, images, torch.zeros(4, dtype=torch.int64), AttackSettings("l2", math.inf, 5, 0.01), draws())
    assert torch.equal(found, images)


def test_needs_no_git(tmp_path: Path) -> None:
    """foolbox asks for the program when it is imported."""
    code = "from kattn_cli.attacks.libraries import import_foolbox; import_foolbox().attacks.L2CarliniWagnerAttack"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PATH": str(tmp_path)})
