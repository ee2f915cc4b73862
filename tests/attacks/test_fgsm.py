"""FGSM against foolbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kattn_cli.attacks import AttackSettings, Norm
from kattn_cli.attacks.fgsm import perturb as fgsm

foolbox = pytest.importorskip("foolbox")
THEIRS = {"linf": foolbox.attacks.LinfFastGradientAttack, "l2": foolbox.attacks.L2FastGradientAttack}


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("epsilon", [1 / 255, 0.5])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_equals_foolbox(
    colours: Any, draws: Callable[..., torch.Generator], norm: Norm, epsilon: float, targeted: bool
) -> None:
    model, images, labels = colours
    if targeted:  # foolbox's does not aim; one step of its PGD does
        criterion = foolbox.criteria.TargetedMisclassification(labels)
        kinds = {"linf": foolbox.attacks.LinfPGD, "l2": foolbox.attacks.L2PGD}
        theirs = kinds[norm](rel_stepsize=1, steps=1, random_start=False)
    else:
        criterion = foolbox.criteria.Misclassification(labels)
        theirs = THEIRS[norm](random_start=False)
    expected = theirs.run(foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu"), images, criterion, epsilon=epsilon)
    found = fgsm(model, images, labels, AttackSettings(norm, epsilon, 1, 1, targeted), draws())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
