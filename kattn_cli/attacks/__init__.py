"""Attacks, one file each. They see only ``model(images) → logits``, with pixels in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from kattn_cli.attacks.fgsm import fgsm
from kattn_cli.attacks.noise import noise
from kattn_cli.attacks.pgd import RELATIVE_STEP, STEPS, pgd

Model = Callable[[Tensor], Tensor]


class Perturb(Protocol):
    """Images ``(B, C, H, W)`` in [0, 1] to images within ``epsilon`` of them, still in [0, 1]."""

    def __call__(
        self, model: Model, images: Tensor, labels: Tensor, *, epsilon: float, generator: torch.Generator
    ) -> Tensor: ...


@dataclass(frozen=True)
class Attack:
    """An attack and what a table says of it; ``relative_step`` is the step size as a share of ε."""

    perturb: Perturb
    description: str
    norm: str = "linf"
    steps: int = 1
    relative_step: float = 1.0
    restarts: int = 1


ATTACKS: dict[str, Attack] = {
    "pgd": Attack(pgd, "projected gradient descent from a random start", steps=STEPS, relative_step=RELATIVE_STEP),
    "fgsm": Attack(fgsm, "one step along the sign of the gradient"),
    "noise": Attack(noise, "uniform noise, blind to the model", steps=0),
}
