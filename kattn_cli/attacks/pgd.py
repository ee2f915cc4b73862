"""PGD, projected gradient descent (Madry et al., 2018), ℓ∞, untargeted.

Settings of the RPC-Attention paper, Appendix A.2: 20 steps of 0.15 ε; from a uniformly random start.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kattn_cli.attacks.gradient import loss_gradient, uniform

STEPS = 20
RELATIVE_STEP = 0.15


def pgd(
    model: Callable[[Tensor], Tensor],
    images: Tensor,
    labels: Tensor,
    *,
    epsilon: float,
    generator: torch.Generator,
    steps: int = STEPS,
    relative_step: float = RELATIVE_STEP,
    random_start: bool = True,
) -> Tensor:
    """``steps`` ascents of the loss, each projected onto the ε-ball around ``images`` and onto [0, 1]."""
    low, high = (images - epsilon).clamp(min=0), (images + epsilon).clamp(max=1)
    start = images + uniform(images, epsilon, generator) if random_start else images
    adversarial = start.clamp(low, high)
    for _ in range(steps):
        ascent = loss_gradient(model, adversarial, labels).sign()
        adversarial = (adversarial + relative_step * epsilon * ascent).clamp(low, high)
    return adversarial
