"""FGSM, the fast gradient sign method (Goodfellow et al., 2015), ℓ∞, and its ℓ2 form."""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import Model, loss_gradient, require, steepest


def perturb(
    model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
) -> Tensor:
    """Return ``x ± ε · steepest ascent of the cross-entropy``, clipped to [0, 1]; minus where targeted. Draw nothing.

    Raises:
        KattnError: for another norm or an infinite ε.
    """
    require("fgsm", settings)
    ascent = steepest(loss_gradient(model, images, labels), settings.norm)
    step = -settings.epsilon if settings.targeted else settings.epsilon
    return torch.add(images, ascent, alpha=step).clamp_(0, 1)


def passes(settings: AttackSettings) -> Passes:
    """Return one forward and one backward pass."""
    return Passes(1, 1)
