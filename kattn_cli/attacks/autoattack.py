"""AutoAttack, standard version (Croce and Hein, 2020), by pyautoattack: ℓ∞, ℓ2 or ℓ1.

APGD on the cross-entropy, targeted APGD on the DLR loss, targeted FAB, and Square, each on the images that those before
it left. Its settings are its own; where there are fewer than ten classes, its targets are all classes but the label.

Its warnings (a random model, gradients that are zero) are silenced: other attacks beside it show the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import Model, project, require
from kattn_cli.attacks.libraries import PYAUTOATTACK_NORMS, isolated, require_tiles
from kattn_cli.errors import KattnError

FEWEST_CLASSES = 4


def perturb(
    model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
) -> Tensor:
    """Return the first image found that the model gets wrong; the clean one where none was.

    Raises:
        KattnError: for an infinite ε, a target, a model of fewer than 4 classes, or images too small in ℓ2 and ℓ1.
    """
    require("autoattack", settings)
    require_tiles("autoattack", images, settings)
    from pyautoattack import AutoAttack

    with torch.no_grad():
        classes = model(images[:1]).shape[1]
    if classes < FEWEST_CLASSES:
        raise KattnError(
            f"autoattack: its targeted DLR loss needs at least 4 classes, this model has {classes}; "
            "use pgd and square instead"
        )
    with isolated(generator) as seed:
        attack = AutoAttack(
            model,
            norm=PYAUTOATTACK_NORMS[settings.norm],
            eps=settings.epsilon,
            seed=seed,
            version="standard",
            device=images.device,
        )
        attack.verbose = False
        for targeted in (attack.apgd_targeted, attack.fab):
            targeted.n_target_classes = min(targeted.n_target_classes, classes - 1)
        found, _ = attack.run_standard_evaluation(images, labels, batch_size=len(images))
    return project(found.detach(), images, settings)


def passes(settings: AttackSettings) -> Passes:
    """Return those for an image that every part fails on, with nine targets (five for APGD in ℓ1)."""
    apgd = 103 if settings.norm == "l1" else 101
    restarts, targets = (5, 5) if settings.norm == "l1" else (1, 9)
    ours_and_checks, results, square = 9, 4, 5003
    apgd_ce, apgd_targeted, fab = 1 + restarts * apgd, 1 + targets * (apgd + 1), 1 + 9 * (3 + 2 * 100)
    forward = ours_and_checks + results + apgd_ce + apgd_targeted + fab + square
    return Passes(forward, restarts * apgd + targets * apgd + 9 * 100)
