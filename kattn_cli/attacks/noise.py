"""Uniform noise, ℓ∞ or ℓ2: what an attack must beat to be one.

The RPC-Attention paper names it "a simple noise-adding attack" at ε = 1/255.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks.bounds import project, require
from kattn_cli.attacks.draws import uniform_in_ball
from kattn_cli.attacks.settings import PAPER_EPSILONS, Attack, Model, Norm, Passes, Settings

NORMS: tuple[Norm, ...] = ("linf", "l2")


def noise(model: Model, images: Tensor, labels: Tensor, settings: Settings, generator: torch.Generator) -> Tensor:
    """``clip(x + u)`` with u uniform in the ε-ball, clipped to [0, 1].

    Raises:
        KattnError: for another norm, an infinite ε, or a target.
    """
    require("noise", settings, NORMS, target=False)
    return project(images + uniform_in_ball(images, settings, generator), images, settings)


NOISE = Attack(
    noise,
    "uniform noise, blind to the model",
    NORMS,
    PAPER_EPSILONS,
    lambda settings: Passes(0, 0),
    white_box=False,
    can_restart=True,
)
