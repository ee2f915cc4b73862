"""Square against pyautoattack called directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kattn_cli.attacks import ATTACKS, AttackSettings, Norm
from kattn_cli.attacks.libraries import require_tiles, seed_from
from kattn_cli.attacks.square import perturb as square
from kattn_cli.errors import KattnError

theirs = pytest.importorskip("pyautoattack.square")
BUDGETS = [("linf", "Linf", 0.3), ("l2", "L2", 1.5), ("l1", "L1", 5.0)]


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize(("norm", "name", "epsilon"), BUDGETS)
def test_equals_pyautoattack(
    digits: Any, draws: Callable[..., torch.Generator], norm: Norm, name: str, epsilon: float, targeted: bool
) -> None:
    model, images, labels = digits.model, digits.images[:24], (digits.labels[:24] + targeted) % 10
    attack = theirs.SquareAttack(
        model,
        norm=name,
        n_queries=60,
        eps=epsilon,
        seed=seed_from(draws()),
        targeted=targeted,
        resc_schedule=False,
        device=torch.device("cpu"),
    )
    expected = attack.perturb(images, labels)
    found = square(model, images, labels, AttackSettings(norm, epsilon, 60, 0, targeted), draws())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    moved = (found != images).flatten(1).any(1)
    assert 0 < int(moved.sum()) < 24
    assert bool(((model(found).argmax(1) == labels) == targeted)[moved].all())


def test_refuses_images_it_cannot_tile(colours: Any, draws: Callable[..., torch.Generator]) -> None:
    images, labels = colours.images[:, :, :4], colours.labels
    for name in ("square", "autoattack"):
        text = rf"^{name} --norm l2: needs images of 5 × 5 pixels, these have 4 × 6$"
        with pytest.raises(KattnError, match=text):
            ATTACKS[name].perturb(colours.model, images, labels, AttackSettings("l2", 0.5, 5, 0), draws())


def test_five_pixels_are_enough_and_in_linf_any() -> None:
    for norm, size in (("l2", (5, 5)), ("l1", (5, 9)), ("linf", (2, 3)), ("linf", (5, 4))):
        require_tiles("square", torch.zeros(1, 1, *size), AttackSettings(norm, 0.5, 5, 0))  # type: ignore[arg-type]
