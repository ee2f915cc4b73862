"""Restarts never weaken an attack, and keep the worst run of each image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.attacks import AttackSettings
from kattn_cli.attacks.ball import Model
from kattn_cli.attacks.noise import perturb as noise
from kattn_cli.attacks.pgd import perturb as pgd
from kattn_cli.attacks.threat_model import worst_of

SETTINGS = AttackSettings("linf", 0.1, 3, 0.3)


def test_one_is_the_attack_itself() -> None:
    assert worst_of(pgd, 1) is pgd


@pytest.mark.parametrize("targeted", [False, True])
def test_keeps_the_first_success_or_the_highest_loss(
    digits: Any, draws: Callable[..., torch.Generator], targeted: bool
) -> None:
    """Against runs that are written down: each gives every image noise of its own."""
    model, images, labels = digits.model, digits.images[:100], (digits.labels[:100] + targeted) % 10
    runs = [images + 0.5 * torch.randn(images.shape, generator=draws(run)) for run in range(4)]
    asked: list[int] = []

    def scripted(
        model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
    ) -> Tensor:
        places = [int((digits.images == one).flatten(1).all(1).nonzero()[0]) for one in images]
        asked.append(len(places))
        return runs[len(asked) - 1][places]

    found = worst_of(scripted, 4)(model, images, labels, AttackSettings("linf", 9, 1, 1, targeted), draws())
    successes = 0
    for index in range(100):
        logits = [model(run[index : index + 1]) for run in runs]
        hits = [(int(row.argmax()) == int(labels[index])) == targeted for row in logits]
        losses = [float(F.cross_entropy(row, labels[index : index + 1])) for row in logits]
        worst = min(losses) if targeted else max(losses)
        expected = hits.index(True) if any(hits) else losses.index(worst)
        successes += any(hits)
        assert torch.equal(found[index], runs[expected][index])
    assert 10 < successes < 100
    assert asked[0] == 100 > asked[1] > asked[3]


@pytest.mark.parametrize("attack", [pgd, noise])
def test_never_weaker(digits: Any, draws: Callable[..., torch.Generator], attack: Any) -> None:
    model, images, labels = digits
    settings = AttackSettings("linf", 0.4 if attack is noise else 0.1, 3, 0.3)
    left = [
        model(worst_of(attack, restarts)(model, images, labels, settings, draws())).argmax(1) == labels
        for restarts in (1, 2, 8)
    ]
    assert not (left[1] & ~left[0]).any()
    assert not (left[2] & ~left[1]).any()
    assert left[2].sum() < left[0].sum()
