"""Uniform noise, ℓ∞ or ℓ2: what an attack must beat to be one.

The RPC-Attention paper names it "a simple noise-adding attack" at ε = 1/255.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import Model, project, require, uniform_in_ball


def perturb(
    model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
) -> Tensor:
    """Return ``clip(x + u)`` with u uniform in the ε-ball, clipped to [0, 1].

    Raises:
        KattnError: for another norm, an infinite ε, or a target.
    """
    require("noise", settings)
    return project(images + uniform_in_ball(images, settings, generator), images, settings)


def passes(settings: AttackSettings) -> Passes:
    """Return none: noise does not ask the model."""
    return Passes(0, 0)
