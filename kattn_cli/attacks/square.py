"""Square Attack (Andriushchenko et al., 2020), a random search over squares, by pyautoattack: ℓ∞, ℓ2 or ℓ1.

Set as within AutoAttack: 5,000 queries, the margin loss, first squares of 80 % of the image, and the sizes of the next
by the schedule for 10,000 queries, not rescaled.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import Model, project, require
from kattn_cli.attacks.libraries import PYAUTOATTACK_NORMS, isolated, require_tiles


@torch.no_grad()
def perturb(
    model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
) -> Tensor:
    """Return the first image found that the model gets wrong (or right, where targeted); the clean one where none was.

    ``steps`` are queries of the model.

    Raises:
        KattnError: for an infinite ε, or images too small in ℓ2 and ℓ1.
    """
    require("square", settings)
    require_tiles("square", images, settings)
    from pyautoattack.square import SquareAttack

    with isolated(generator) as seed:
        attack = SquareAttack(
            model,
            norm=PYAUTOATTACK_NORMS[settings.norm],
            n_queries=settings.steps,
            eps=settings.epsilon,
            p_init=0.8,
            n_restarts=1,
            seed=seed,
            targeted=settings.targeted,
            loss="margin",
            resc_schedule=False,
            device=images.device,
        )
        found = attack.perturb(images, labels)
    return project(found, images, settings)


def passes(settings: AttackSettings) -> Passes:
    """Return one forward pass a query, and those that end it."""
    return Passes(settings.steps + 3, 0)
