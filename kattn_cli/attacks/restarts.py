"""Restarts: the worst of several runs of an attack."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.attacks.settings import Model, Perturb, Settings


def worst_of(perturb: Perturb, restarts: int) -> Perturb:
    """``perturb`` run up to ``restarts`` times with fresh draws; ``perturb`` itself where that is once.

    Of each image the first success is kept, and only those without one are attacked again; without any, the run of the
    highest cross-entropy (the lowest, towards the target, where targeted) is kept. The first run draws what
    ``perturb`` alone would, so restarts never make an attack weaker.
    """
    if restarts <= 1:
        return perturb

    def worst(model: Model, images: Tensor, labels: Tensor, settings: Settings, generator: torch.Generator) -> Tensor:
        kept = perturb(model, images, labels, settings, generator).clone()
        success, gain = _outcome(model, kept, labels, settings)
        for _ in range(restarts - 1):
            left = (~success).nonzero().squeeze(1)
            if not len(left):
                break
            again = perturb(model, images[left], labels[left], settings, generator)
            new_success, new_gain = _outcome(model, again, labels[left], settings)
            better = new_success | (new_gain > gain[left])
            places = left[better]
            kept[places], success[places], gain[places] = again[better], new_success[better], new_gain[better]
        return kept

    return worst


@torch.no_grad()
def _outcome(model: Model, images: Tensor, labels: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """Per image: whether the attack succeeded, and how far it got; ``(B,)`` each."""
    logits = model(images)
    losses = F.cross_entropy(logits, labels, reduction="none")
    reached = logits.argmax(1) == labels
    return (reached, -losses) if settings.targeted else (~reached, losses)
