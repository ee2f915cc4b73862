"""SLD, sparse ℓ1 descent (Tramèr and Boneh, 2019).

The RPC-Attention paper states none of its settings; ours are the defaults of CleverHans, which it ran: ε = 10, 20 steps
of 1, a direction of the 1 % largest entries of the gradient.

Written here because foolbox 3.3.4's SparseL1DescentAttack leaves the ball: its projection takes the threshold one
entry too late, and moves images outwards that are inside while another of the batch is outside (up to 5 % beyond ε on
8 × 8 images). Otherwise the steps are foolbox's: pixels that are at 0 or 1 and would leave do not count, and the
projection is to the nearest point of the ball (CleverHans: no such exception, and drawn straight back).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import Model, loss_gradient, require

QUANTILE = 0.99


def perturb(
    model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
) -> Tensor:
    """Take ``steps`` on the largest entries of the gradient, each projected onto the ball and onto [0, 1].

    Starts at the images and draws nothing.

    Raises:
        KattnError: for another norm or an infinite ε.
    """
    require("sld", settings)
    adversarial = images
    for _ in range(settings.steps):
        ascent = loss_gradient(model, adversarial, labels)
        direction = _sparse(-ascent if settings.targeted else ascent, adversarial)
        stepped = torch.add(adversarial, direction, alpha=settings.step_size)
        adversarial = (images + onto_l1_ball(stepped - images, settings.epsilon)).clamp_(0, 1)
    return adversarial


def _sparse(ascent: Tensor, images: Tensor) -> Tensor:
    """Return signs of the entries at or above the quantile of each image's, divided by their number."""
    blocked = ((images == 0) & (ascent < 0)) | ((images == 1) & (ascent > 0))
    sizes = ascent.masked_fill(blocked, 0).abs().flatten(1)
    rank = math.ceil(QUANTILE * (sizes.shape[1] - 1)) + 1
    threshold = sizes.kthvalue(rank, dim=1, keepdim=True).values
    kept = ((sizes >= threshold) & (sizes > 0)).view_as(ascent)
    count = kept.sum((1, 2, 3), keepdim=True).clamp_(min=1)
    return ascent.sign() * kept / count


def onto_l1_ball(change: Tensor, radius: float) -> Tensor:
    """Return the nearest point of the ℓ1 ball around 0 (Duchi et al., 2008, Figure 1); ``(B, …)`` to the same."""
    sizes = change.abs().flatten(1)
    ranked = sizes.sort(dim=1, descending=True).values
    places = torch.arange(1, sizes.shape[1] + 1, device=change.device)
    thresholds = (ranked.cumsum(1) - radius) / places
    last = (ranked > thresholds).sum(1, keepdim=True).clamp_(min=1)
    threshold = thresholds.gather(1, last - 1).clamp_(min=0)
    return change.sign() * (sizes - threshold).clamp_(min=0).view_as(change)


def passes(settings: AttackSettings) -> Passes:
    """Return one forward and one backward pass a step."""
    return Passes(settings.steps, settings.steps)
