"""An attack of one file, for ``test_toy_attack.py``: every pixel as dark as the budget allows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import project, require


def perturb(model: Any, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator) -> Tensor:
    """Return the images less ε, in [0, 1]."""
    require("dark", settings)
    return project(images - settings.epsilon, images, settings)


def passes(settings: AttackSettings) -> Passes:
    """Return none: it does not ask the model."""
    return Passes(0, 0)
