"""SPSA against a plain version that attacks one image at a time and looks at one pair at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.attacks import ATTACKS, AttackSettings
from kattn_cli.attacks import spsa as module
from kattn_cli.attacks.ball import Model
from kattn_cli.attacks.spsa import perturb as spsa
from kattn_cli.attacks.spsa import random_signs

STEPS = 3
EPSILON = 0.1


def plain(model: Model, images: Tensor, labels: Tensor, targeted: bool, generator: torch.Generator) -> Tensor:
    """Uesato et al. (2018) as CleverHans's TensorFlow program has it; 0.01 each for ε = 0.1."""
    starts = (2 * torch.rand(images.shape, generator=generator, dtype=images.dtype) - 1) * EPSILON
    signs = [[random_signs(images, generator) for _ in range(64)] for _ in range(STEPS)]

    def loss(image: Tensor, label: int) -> float:
        logits = model(image[None])[0].tolist()
        margin = logits[label] - max(logits[:label] + logits[label + 1 :])
        return -margin if targeted else margin

    found = []
    for index, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        now = (image + starts[index]).clamp(0, 1)
        first, second = torch.zeros_like(image), torch.zeros_like(image)
        for step in range(STEPS):
            gradient = torch.zeros_like(image)
            for sign in (pair[index] for pair in signs[step]):
                gradient += (loss(now + 0.01 * sign, label) - loss(now - 0.01 * sign, label)) / 0.02 * sign / 64
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            mean, variance = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
            now = now - 0.01 * mean / (variance.sqrt() + 1e-8)
            now = image + (now - image).clamp(-EPSILON, EPSILON)
            now = now.clamp(0, 1)
        found.append(now)
    return torch.stack(found)


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("chunk", [1, 50, 512])
def test_equals_the_plain_version(
    colours: Any, draws: Callable[..., torch.Generator], monkeypatch: pytest.MonkeyPatch, chunk: int, targeted: bool
) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    model, images, labels = colours.model, colours.images[:3], colours.labels[:3]
    found = spsa(model, images, labels, AttackSettings("linf", EPSILON, STEPS, 0.1, targeted), draws())
    torch.testing.assert_close(found, plain(model, images, labels, targeted, draws()), rtol=0, atol=1e-9)


def test_sees_few_images_at_once_and_as_many_as_it_says(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    seen: list[int] = []

    def model(images: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        seen.append(len(images))
        return digits.model(images)

    settings = AttackSettings("linf", EPSILON, 2, 0.1)
    spsa(model, digits.images[:30], digits.labels[:30], settings, draws())
    assert max(seen) <= 512
    assert sum(seen) == 30 * ATTACKS["spsa"].passes(settings).forward == 30 * 2 * 128


def test_signs_are_minus_one_and_one_as_often(draws: Callable[..., torch.Generator]) -> None:
    signs = random_signs(torch.zeros(100, 1, 10, 10, dtype=torch.float64), draws())
    assert signs.dtype == torch.float64
    assert signs.abs().eq(1).all()
    assert abs(signs.mean().item()) < 0.04, "four standard deviations of 10,000"


def test_comes_near_the_gradient(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    """It hurts far more than noise, and no more than PGD."""
    images, labels = digits.images[:64], digits.labels[:64]
    settings = {name: AttackSettings("linf", 0.1, ATTACKS[name].steps, ATTACKS[name].relative_step) for name in ATTACKS}
    right = {
        name: (digits.model(ATTACKS[name].perturb(digits.model, images, labels, settings[name], draws())).argmax(1))
        == labels
        for name in ("pgd", "spsa", "noise")
    }
    shares = {name: float(flags.double().mean()) for name, flags in right.items()}
    assert shares["pgd"] - 0.02 <= shares["spsa"] < shares["noise"] - 0.2
