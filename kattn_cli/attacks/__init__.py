"""Attacks, one file each. They see only ``model(images) → logits``, with pixels in [0, 1]."""

from __future__ import annotations

from kattn_cli.attacks.autoattack import AUTOATTACK
from kattn_cli.attacks.cw import CW
from kattn_cli.attacks.fgsm import FGSM
from kattn_cli.attacks.noise import NOISE
from kattn_cli.attacks.pgd import PGD
from kattn_cli.attacks.settings import Attack, Model, Norm, Passes, Perturb, Settings
from kattn_cli.attacks.sld import SLD
from kattn_cli.attacks.spsa import SPSA
from kattn_cli.attacks.square import SQUARE

ATTACKS: dict[str, Attack] = {
    "pgd": PGD,
    "fgsm": FGSM,
    "spsa": SPSA,
    "sld": SLD,
    "cw": CW,
    "noise": NOISE,
    "autoattack": AUTOATTACK,
    "square": SQUARE,
}

__all__ = ["ATTACKS", "Attack", "Model", "Norm", "Passes", "Perturb", "Settings"]
