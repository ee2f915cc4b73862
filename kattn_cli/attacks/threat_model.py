"""The threat model: in which units ε is, whether pixels stay in [0, 1], and how many starts an attack has.

``paper``: ε in pixels, which stay in [0, 1]. ``reference``: what the program of the RPC-Attention paper's authors does,
which attacks images that are already normalised and does not clip them: ε in units of (pixel - mean) / std, so that
1/255 is std/255 in pixels, which may leave [0, 1].

Attacks know only a box [0, 1], so the normalised image z is mapped to u = (z - low) / (high - low), ε with it, and the
model in u is the model at the pixels that u stands for. ``low`` and ``high`` are what a pixel of [0, 1] can become in
any channel, widened by ε, so that clipping to the box never binds; they depend on no image. A step is a share of ε and
stays one. Where ε is infinite they are not widened: the box is what pixels can become, and a step is CW's, whose
variable is mapped onto the box whatever its size, so it stays too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Norm
from kattn_cli.attacks.ball import Model, Perturb, check_bounds, distances

Convention = Literal["paper", "reference"]

UNITS: dict[Convention, str] = {"paper": "pixels in [0, 1]", "reference": "normalised"}
"""Units of ε, for a table."""


@dataclass(frozen=True)
class Box:
    """Pixels x as u = (x - offset) / scale, per channel ``(C, 1, 1)``; ``width`` is the box's in normalised units."""

    offset: Tensor
    scale: Tensor
    width: float

    @classmethod
    def around_pixels(cls, mean: Tensor, std: Tensor, epsilon: float) -> Box:
        """Return the box that holds every image that an attack of this ε can make of pixels in [0, 1]."""
        margin = epsilon if math.isfinite(epsilon) else 0.0
        low = float((-mean / std).min()) - margin
        high = float(((1 - mean) / std).max()) + margin
        return cls(mean + low * std, (high - low) * std, high - low)

    def enter(self, images: Tensor) -> Tensor:
        """Map pixels to u, in [0, 1] whatever the rounding."""
        return ((images - self.offset) / self.scale).clamp_(0, 1)

    def leave(self, boxed: Tensor) -> Tensor:
        """Map u to pixels."""
        return boxed * self.scale + self.offset


def attack_in(
    convention: Convention,
    perturb: Perturb,
    model: Model,
    images: Tensor,
    labels: Tensor,
    settings: AttackSettings,
    generator: torch.Generator,
    mean: Tensor,
    std: Tensor,
) -> Tensor:
    """Attack in a convention; where it is ``reference``, the pixels ``(B, C, H, W)`` returned may leave [0, 1].

    Args:
        settings: with ε in the convention's units.
        mean, std: of the normalisation inside the model, ``(C, 1, 1)``.
    """
    if convention == "paper":
        return perturb(model, images, labels, settings, generator)
    box = Box.around_pixels(mean.to(images), std.to(images), settings.epsilon)
    inside = replace(settings, epsilon=settings.epsilon / box.width)
    found = perturb(lambda boxed: model(box.leave(boxed)), box.enter(images), labels, inside, generator)
    return box.leave(found)


def check_in(
    convention: Convention,
    name: str,
    adversarial: Tensor,
    images: Tensor,
    settings: AttackSettings,
    mean: Tensor,
    std: Tensor,
) -> None:
    """Assert the bounds of pixels in the convention's units; ``reference`` does not ask for pixels in [0, 1].

    Raises:
        AssertionError: if an image left its bounds.
    """
    if convention == "paper":
        check_bounds(name, adversarial, images, settings)
        return
    units = _normalised(adversarial, mean, std), _normalised(images, mean, std)
    check_bounds(name, *units, settings, box=False, unit=float(1 / std.min()))


def distances_in(
    convention: Convention, adversarial: Tensor, images: Tensor, mean: Tensor, std: Tensor
) -> dict[Norm, Tensor]:
    """Return :func:`distances` of pixels, in the convention's units."""
    if convention == "paper":
        return distances(adversarial, images)
    return distances(_normalised(adversarial, mean, std), _normalised(images, mean, std))


def _normalised(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    return (images - mean.to(images)) / std.to(images)


def worst_of(perturb: Perturb, restarts: int) -> Perturb:
    """Return ``perturb`` as up to ``restarts`` runs with fresh draws; ``perturb`` itself where that is one.

    Of each image the first success is kept, and only those without one are attacked again; without any, the run of the
    highest cross-entropy (the lowest, towards the target, where targeted) is kept. The first run draws what
    ``perturb`` alone would, so restarts never make an attack weaker.
    """
    if restarts <= 1:
        return perturb

    def worst(
        model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
    ) -> Tensor:
        kept = perturb(model, images, labels, settings, generator).clone()
        success, gain = _outcome(model, kept, labels, settings)
        for _ in range(restarts - 1):
            left = (~success).nonzero().squeeze(1)
            if not len(left):
                break
            again = perturb(model, images[left], labels[left], settings, generator)
            new_success, new_gain = _outcome(model, again, labels[left], settings)
            better = new_success | (new_gain > gain[left])
            places = left[better]
            kept[places], success[places], gain[places] = again[better], new_success[better], new_gain[better]
        return kept

    return worst


@torch.no_grad()
def _outcome(model: Model, images: Tensor, labels: Tensor, settings: AttackSettings) -> tuple[Tensor, Tensor]:
    """Return whether the attack on each image succeeded, and how far it got; ``(B,)`` each."""
    logits = model(images)
    losses = F.cross_entropy(logits, labels, reduction="none")
    reached = logits.argmax(1) == labels
    return (reached, -losses) if settings.targeted else (~reached, losses)
