"""Attacks: a file for each, and a card for each here. They see only ``model(images) → logits``, pixels in [0, 1].

To add one, write its file with ``perturb`` and ``passes``, and give it a card in :data:`ATTACKS`. From the card come
its flag of ``kattn attack``, its line of ``kattn list attacks``, its place in tables and figures, and whether it is
judged as one that sees gradients. Never imports torch, so that the command line and tables can read the cards.
"""

from __future__ import annotations

import math

from kattn_cli.attacks.attack import PAPER_EPSILONS, Attack, AttackSettings, Norm, Passes

ATTACKS: dict[str, Attack] = {
    "pgd": Attack(
        "kattn_cli.attacks.pgd",
        "projected gradient descent from a random start",
        norms=("linf", "l2"),
        epsilons=PAPER_EPSILONS,
        white_box=True,
        steps=20,
        relative_step=0.15,
        can_target=True,
        can_restart=True,
    ),
    "fgsm": Attack(
        "kattn_cli.attacks.fgsm",
        "one step along the sign of the gradient",
        norms=("linf", "l2"),
        epsilons=PAPER_EPSILONS,
        white_box=True,
        steps=1,
        relative_step=1.0,
        can_target=True,
    ),
    "spsa": Attack(
        "kattn_cli.attacks.spsa",
        "gradient-free: Adam on differences of the margin between random pairs",
        norms=("linf",),
        epsilons=(0.1,),
        white_box=False,
        steps=40,
        relative_step=0.1,
        can_target=True,
        can_restart=True,
    ),
    "sld": Attack(
        "kattn_cli.attacks.sld",
        "sparse ℓ1 descent: steps on the largest entries of the gradient",
        norms=("l1",),
        epsilons=(10.0,),
        white_box=True,
        steps=20,
        relative_step=0.1,
        can_target=True,
    ),
    "cw": Attack(
        "kattn_cli.attacks.cw",
        "the smallest ℓ2 perturbation, found by Carlini and Wagner's optimisation",
        norms=("l2",),
        epsilons=(math.inf,),
        white_box=True,
        steps=1000,
        relative_step=0.01,
        can_target=True,
    ),
    "noise": Attack(
        "kattn_cli.attacks.noise",
        "uniform noise, blind to the model",
        norms=("linf", "l2"),
        epsilons=PAPER_EPSILONS,
        white_box=False,
        can_restart=True,
    ),
    "autoattack": Attack(
        "kattn_cli.attacks.autoattack",
        "APGD, targeted APGD, targeted FAB and Square, standard version",
        norms=("linf", "l2", "l1"),
        epsilons=(1 / 255,),
        white_box=True,
    ),
    "square": Attack(
        "kattn_cli.attacks.square",
        "random search over squares",
        norms=("linf", "l2", "l1"),
        epsilons=(1 / 255,),
        white_box=False,
        steps=5000,
        can_target=True,
        can_restart=True,
    ),
}
"""In the order of tables and figures."""

__all__ = ["ATTACKS", "Attack", "AttackSettings", "Norm", "Passes"]
