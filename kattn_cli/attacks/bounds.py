"""The ε-ball and the box of pixels: how far images went, back into bounds, and the check that none left them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kattn_cli.attacks.gradient import TINY
from kattn_cli.attacks.settings import Norm, Settings
from kattn_cli.errors import KattnError

_ORDERS: dict[Norm, float] = {"linf": math.inf, "l2": 2, "l1": 1}
_ROUNDING = 1e-6
"""ℓ∞: how far float32 may round a pixel beyond its ball before we call it a bug."""
_RELATIVE_ROUNDING = 1e-5
"""ℓ2 and ℓ1: the same for a sum over all pixels, as a share of ε, …"""
_PIXEL_ROUNDING = 2**-24
"""… and what rounding each pixel to float32 may add."""


def require(
    name: str, settings: Settings, norms: tuple[Norm, ...], *, finite: bool = True, target: bool = True
) -> None:
    """Refuse settings that an attack lacks.

    Args:
        finite: whether ε must be finite.
        target: whether the attack can be targeted.

    Raises:
        KattnError: if the attack cannot do what the settings ask.
    """
    if settings.norm not in norms:
        raise KattnError(f"{name} --norm {settings.norm}: expected {' or '.join(norms)}")
    if finite and not math.isfinite(settings.epsilon):
        raise KattnError(f"{name}: needs a finite ε; cw looks for the smallest perturbation")
    if settings.targeted and not target:
        raise KattnError(f"{name} --targeted: aims at no class; leave out --targeted or {name}")


def distances(adversarial: Tensor, images: Tensor) -> dict[Norm, Tensor]:
    """How far each image went in each norm, ``(B,)`` float64 each."""
    change = (adversarial - images).flatten(1)
    return {
        norm: torch.linalg.vector_norm(change, order, dim=1, dtype=torch.float64) for norm, order in _ORDERS.items()
    }


def project(adversarial: Tensor, images: Tensor, settings: Settings) -> Tensor:
    """Onto the ε-ball around ``images`` and onto [0, 1].

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
    name: str, adversarial: Tensor, images: Tensor, settings: Settings, *, box: bool = True, unit: float = 1.0
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


def _allowance(images: Tensor, settings: Settings, unit: float) -> float:
    if settings.norm == "linf":
        return _ROUNDING * unit
    pixels = images[0].numel() ** (1 / _ORDERS[settings.norm])
    return _RELATIVE_ROUNDING * settings.epsilon + _PIXEL_ROUNDING * unit * pixels
