"""The ε-ball: random points in it, the steepest way out, back into it and the box of pixels, and the check on both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.attacks import ATTACKS, AttackSettings, Norm
from kattn_cli.errors import KattnError

Model = Callable[[Tensor], Tensor]
"""Images ``(B, C, H, W)``, pixels in [0, 1], to logits ``(B, classes)``."""

TINY = 1e-12
_ORDERS: dict[Norm, float] = {"linf": math.inf, "l2": 2, "l1": 1}
_ROUNDING = 1e-6
"""ℓ∞: how far float32 may round a pixel beyond its ball before we call it a bug."""
_RELATIVE_ROUNDING = 1e-5
"""ℓ2 and ℓ1: the same for a sum over all pixels, as a share of ε, …"""
_PIXEL_ROUNDING = 2**-24
"""… and what rounding each pixel to float32 may add."""


class Perturb(Protocol):
    """Images ``(B, C, H, W)`` in [0, 1] to images within ε of them in the norm, still in [0, 1].

    ``model`` is in ``eval`` mode and its parameters take no gradient; ``generator`` (on the CPU) is all that an attack
    draws from; what is returned takes no gradient.
    """

    def __call__(
        self, model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
    ) -> Tensor: ...


def require(name: str, settings: AttackSettings) -> None:
    """Refuse settings that the attack of this name cannot follow, by its card.

    Raises:
        KattnError: for a norm that it does not know, an infinite ε, or a target.
    """
    card = ATTACKS[name]
    if settings.norm not in card.norms:
        raise KattnError(f"{name} --norm {settings.norm}: expected {' or '.join(card.norms)}")
    if card.needs_budget and not math.isfinite(settings.epsilon):
        raise KattnError(f"{name}: needs a finite ε; cw looks for the smallest perturbation")
    if settings.targeted and not card.can_target:
        raise KattnError(f"{name} --targeted: aims at no class; leave out --targeted or {name}")


def loss_gradient(model: Model, images: Tensor, labels: Tensor) -> Tensor:
    """Return the gradient of each image's cross-entropy with respect to the image."""
    images = images.detach().requires_grad_()
    with torch.enable_grad():
        loss = F.cross_entropy(model(images), labels, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, images)
    return gradient


def steepest(gradient: Tensor, norm: Norm) -> Tensor:
    """Return the direction of length 1 in ``norm`` (linf or l2), image by image, along which the loss rises fastest.

    ``gradient``: ``(B, C, H, W)``. Where an image's is zero, so is its direction.
    """
    if norm == "linf":
        return gradient.sign()
    lengths = torch.linalg.vector_norm(gradient, dim=(1, 2, 3), keepdim=True)
    return gradient / lengths.clamp_(min=TINY)


def uniform_in_ball(images: Tensor, settings: AttackSettings, generator: torch.Generator) -> Tensor:
    """Return perturbations of the images' shape, uniform in the ε-ball of the norm (linf or l2).

    ℓ2: a uniform direction times ε · radius^(1/d), the radius uniform in [0, 1] and d the number of pixel values.
    """
    if settings.norm == "linf":
        draw = torch.rand(images.shape, generator=generator, dtype=images.dtype)
        return draw.mul_(2).sub_(1).mul_(settings.epsilon).to(images.device)
    direction = torch.randn(images.shape, generator=generator, dtype=images.dtype)
    radius = torch.rand(len(images), 1, 1, 1, generator=generator, dtype=images.dtype)
    lengths = torch.linalg.vector_norm(direction, dim=(1, 2, 3), keepdim=True)
    scale = settings.epsilon * radius ** (1 / images[0].numel()) / lengths
    return direction.mul_(scale).to(images.device)


def distances(adversarial: Tensor, images: Tensor) -> dict[Norm, Tensor]:
    """Return how far each image went in each norm, ``(B,)`` float64 each."""
    change = (adversarial - images).flatten(1)
    return {
        norm: torch.linalg.vector_norm(change, order, dim=1, dtype=torch.float64) for norm, order in _ORDERS.items()
    }


def project(adversarial: Tensor, images: Tensor, settings: AttackSettings) -> Tensor:
    """Return the images brought back onto the ε-ball around ``images`` and onto [0, 1].

    ℓ∞ and ℓ2: the nearest point of the ball, then of the box, which brings it no farther from the image. ℓ1: drawn
    straight back towards the image, which is in both, but not the nearest point.
    """
    epsilon = settings.epsilon
    if settings.norm == "linf":
        return torch.clamp(adversarial, images - epsilon, images + epsilon).clamp_(0, 1)
    change = adversarial - images
    lengths = torch.linalg.vector_norm(change, _ORDERS[settings.norm], dim=(1, 2, 3), keepdim=True)
    return change.mul_((epsilon / lengths.clamp_(min=TINY)).clamp_(max=1)).add_(images).clamp_(0, 1)


def check_bounds(
    name: str, adversarial: Tensor, images: Tensor, settings: AttackSettings, *, box: bool = True, unit: float = 1.0
) -> None:
    """Assert that every image is finite, within ε of its own in the settings' norm, and in [0, 1].

    Allowed for rounding, ``unit`` being 1 for pixels: ``unit`` · 10⁻⁶ in ℓ∞; 10⁻⁵ ε + ``unit`` · 2⁻²⁴ d^(1/p) in ℓp,
    with d the number of pixel values. Nothing is allowed beyond [0, 1].

    Args:
        box: whether images must be in [0, 1].
        unit: how much larger the numbers are than pixels, where they are other than pixels.

    Raises:
        AssertionError: otherwise, with the attack, the distance and ε.
    """
    if not bool(torch.isfinite(adversarial).all()):
        raise AssertionError(f"{name} returned pixels that are not finite numbers")
    norm, epsilon = settings.norm, settings.epsilon
    distance = float(distances(adversarial, images)[norm].max())
    if distance > epsilon + _allowance(images, settings, unit):
        raise AssertionError(f"{name} left its ball: {norm} distance {distance:.9g} > ε {epsilon:.9g}")
    low, high = float(adversarial.min()), float(adversarial.max())
    if box and (low < 0 or high > 1):
        raise AssertionError(f"{name} left [0, 1]: pixels in [{low:.9g}, {high:.9g}]")


def _allowance(images: Tensor, settings: AttackSettings, unit: float) -> float:
    if settings.norm == "linf":
        return _ROUNDING * unit
    pixels = images[0].numel() ** (1 / _ORDERS[settings.norm])
    return _RELATIVE_ROUNDING * settings.epsilon + _PIXEL_ROUNDING * unit * pixels
