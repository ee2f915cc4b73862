"""PGD, projected gradient descent (Madry et al., 2018), ℓ∞ or ℓ2.

The RPC-Attention paper, Appendix A.2: 20 steps, "a step size of α = 0.15", which we take as a share of ε, and ε from
1/255 to 6/255. It does not name the start; ours is uniform in the ball, as Madry et al.'s.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import Model, loss_gradient, project, require, steepest, uniform_in_ball


def perturb(
    model: Model,
    images: Tensor,
    labels: Tensor,
    settings: AttackSettings,
    generator: torch.Generator,
    *,
    random_start: bool = True,
) -> Tensor:
    """Climb the cross-entropy in ``steps``, each projected onto the ε-ball around ``images`` and onto [0, 1].

    A step goes along the gradient's sign (ℓ∞) or the normalised gradient (ℓ2); down instead of up where targeted.

    Raises:
        KattnError: for another norm or an infinite ε.
    """
    require("pgd", settings)
    start = images + uniform_in_ball(images, settings, generator) if random_start else images.clone()
    adversarial = project(start, images, settings)
    step = -settings.step_size if settings.targeted else settings.step_size
    for _ in range(settings.steps):
        ascent = steepest(loss_gradient(model, adversarial, labels), settings.norm)
        adversarial = project(adversarial.add_(ascent, alpha=step), images, settings)
    return adversarial


def passes(settings: AttackSettings) -> Passes:
    """Return one forward and one backward pass a step."""
    return Passes(settings.steps, settings.steps)
