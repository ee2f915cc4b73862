"""FGSM, the fast gradient sign method (Goodfellow et al., 2015), ℓ∞, untargeted."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kattn_cli.attacks.gradient import loss_gradient


def fgsm(
    model: Callable[[Tensor], Tensor],
    images: Tensor,
    labels: Tensor,
    *,
    epsilon: float,
    generator: torch.Generator,
) -> Tensor:
    """``clip(x + ε · sign(∇ₓ loss))``, clipped to [0, 1]."""
    return (images + epsilon * loss_gradient(model, images, labels).sign()).clamp(0, 1)
