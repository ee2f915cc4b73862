"""What an attack is told, and what the rest of kattn knows of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

Norm = Literal["linf", "l2", "l1"]
Model = Callable[[Tensor], Tensor]
"""Images ``(B, C, H, W)``, pixels in [0, 1], to logits ``(B, classes)``."""

PAPER_EPSILONS = tuple(i / 255 for i in range(1, 7))
"""The ℓ∞ budgets of the RPC-Attention paper's Figure 3, in pixels."""


@dataclass(frozen=True)
class Settings:
    """One attack's settings.

    ``epsilon``: the budget in the units of the pixels, ``math.inf`` where the attack looks for the smallest
    perturbation. ``relative_step``: the step size as a share of ε, or as it is where ε is infinite.
    ``targeted``: the labels given to the attack are classes to be reached, not to be left.
    """

    norm: Norm
    epsilon: float
    steps: int
    relative_step: float
    targeted: bool = False

    @property
    def step_size(self) -> float:
        """In the units of the pixels."""
        return self.relative_step * (self.epsilon if math.isfinite(self.epsilon) else 1)


class Passes(NamedTuple):
    """Passes of the model that an attack takes an image, at most."""

    forward: float
    backward: float


class Perturb(Protocol):
    """Images ``(B, C, H, W)`` in [0, 1] to images within ε of them in the norm, still in [0, 1].

    ``model`` is in ``eval`` mode and its parameters take no gradient; ``generator`` (on the CPU) is all that an attack
    draws from; what is returned takes no gradient.
    """

    def __call__(
        self, model: Model, images: Tensor, labels: Tensor, settings: Settings, generator: torch.Generator
    ) -> Tensor: ...


@dataclass(frozen=True)
class Attack:
    """An attack and its defaults.

    ``norms``: those it knows, the default first. ``epsilons``: default budgets. ``steps`` and ``relative_step``:
    0 where it takes none, or sets its own. ``white_box``: it sees gradients. ``can_target``, ``can_restart``: whether
    ``--targeted`` and ``--restarts`` apply.
    """

    perturb: Perturb
    description: str
    norms: tuple[Norm, ...]
    epsilons: tuple[float, ...]
    passes: Callable[[Settings], Passes]
    steps: int = 0
    relative_step: float = 0.0
    white_box: bool = True
    can_target: bool = False
    can_restart: bool = False
