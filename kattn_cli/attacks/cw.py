"""CW, the attack of Carlini and Wagner (2017), ℓ2, by foolbox: the smallest perturbation it can find.

The RPC-Attention paper states none of its settings. Taken here: CleverHans's defaults, which it ran (1,000 steps, five
steps of the search for the constant from 10⁻², no confidence), and steps of 0.01 (the attack's authors' and foolbox's;
CleverHans's are 0.005). The step is Adam's, in the variable w of x = (tanh w + 1) / 2: it is ``relative_step`` whatever
ε is. The search for a constant ends early where the loss of the whole batch stalls (foolbox), so that what is found
depends a little on the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import Model, distances, require
from kattn_cli.attacks.libraries import foolbox_criterion, foolbox_model, import_foolbox, isolated

BINARY_SEARCH_STEPS = 5
INITIAL_CONST = 1e-2
_ROUNDING = 1e-6


def perturb(
    model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
) -> Tensor:
    """Return the nearest image found that the model gets wrong (right, where targeted); the clean one where none was.

    With a finite ε, the clean image also where the one found is farther than ε, up to rounding.

    Raises:
        KattnError: for another norm.
    """
    require("cw", settings)
    attack = import_foolbox().attacks.L2CarliniWagnerAttack(
        binary_search_steps=BINARY_SEARCH_STEPS,
        steps=settings.steps,
        stepsize=settings.relative_step,
        confidence=0,
        initial_const=INITIAL_CONST,
        abort_early=True,
    )
    with isolated(generator):
        found = attack.run(foolbox_model(model, images.device), images, foolbox_criterion(labels, settings))
    with torch.no_grad():
        reached = model(found).argmax(1) == labels
    success = reached if settings.targeted else ~reached
    within = distances(found, images)["l2"] <= settings.epsilon * (1 + _ROUNDING)
    return torch.where((success & within)[:, None, None, None], found, images)


def passes(settings: AttackSettings) -> Passes:
    """Return one forward and one backward pass a step of every search for the constant."""
    return Passes(BINARY_SEARCH_STEPS * settings.steps + 1, BINARY_SEARCH_STEPS * settings.steps)
