"""Uniform noise, ℓ∞: what an attack must beat to be one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kattn_cli.attacks.gradient import uniform


def noise(
    model: Callable[[Tensor], Tensor],
    images: Tensor,
    labels: Tensor,
    *,
    epsilon: float,
    generator: torch.Generator,
) -> Tensor:
    """``clip(x + u)`` with u uniform in [−ε, ε], clipped to [0, 1]."""
    return (images + uniform(images, epsilon, generator)).clamp(0, 1)
