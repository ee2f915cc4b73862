"""FGSM, the fast gradient sign method (Goodfellow et al., 2015), ℓ∞, and its ℓ2 form."""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks.bounds import require
from kattn_cli.attacks.gradient import loss_gradient, steepest
from kattn_cli.attacks.settings import PAPER_EPSILONS, Attack, Model, Norm, Passes, Settings

NORMS: tuple[Norm, ...] = ("linf", "l2")


def fgsm(model: Model, images: Tensor, labels: Tensor, settings: Settings, generator: torch.Generator) -> Tensor:
    """``x ± ε · steepest ascent of the cross-entropy``, clipped to [0, 1]; minus where targeted. Draws nothing.

    Raises:
        KattnError: for another norm or an infinite ε.
    """
    require("fgsm", settings, NORMS)
    ascent = steepest(loss_gradient(model, images, labels), settings.norm)
    step = -settings.epsilon if settings.targeted else settings.epsilon
    return torch.add(images, ascent, alpha=step).clamp_(0, 1)


FGSM = Attack(
    fgsm,
    "one step along the sign of the gradient",
    NORMS,
    PAPER_EPSILONS,
    lambda settings: Passes(1, 1),
    steps=1,
    relative_step=1.0,
    can_target=True,
)
