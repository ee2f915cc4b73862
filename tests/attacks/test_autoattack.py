"""AutoAttack against pyautoattack called directly and against PGD, and what it refuses."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.attacks import ATTACKS, AttackSettings, Norm
from kattn_cli.attacks.autoattack import perturb as autoattack
from kattn_cli.attacks.libraries import seed_from
from kattn_cli.attacks.pgd import perturb as pgd
from kattn_cli.errors import KattnError

pyautoattack = pytest.importorskip("pyautoattack")


@pytest.fixture
def beatable(digits: Any, draws: Callable[..., torch.Generator]) -> Any:
    """Twelve images that PGD beats at ε = 0.12, so that Square has little to do."""
    found = pgd(digits.model, digits.images, digits.labels, AttackSettings("linf", 0.12, 20, 0.15), draws())
    chosen = (digits.model(found).argmax(1) != digits.labels).nonzero().squeeze(1)[:12]
    return digits.model, digits.images[chosen], digits.labels[chosen]


@pytest.mark.parametrize(("norm", "name", "epsilon"), [("linf", "Linf", 0.12), ("l2", "L2", 0.9), ("l1", "L1", 3.0)])
def test_equals_pyautoattack(
    beatable: Any, draws: Callable[..., torch.Generator], norm: Norm, name: str, epsilon: float
) -> None:
    model, images, labels = beatable
    direct = pyautoattack.AutoAttack(model, norm=name, eps=epsilon, seed=seed_from(draws()))
    expected, _ = direct.run_standard_evaluation(images, labels, batch_size=12)
    found = autoattack(model, images, labels, AttackSettings(norm, epsilon, 0, 0), draws())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert not (model(found).argmax(1) == labels).any()


@pytest.mark.slow
def test_never_weaker_than_pgd(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    """On eight images at a budget where PGD leaves some right."""
    model, images, labels = digits.model, digits.images[:8], digits.labels[:8]
    found = autoattack(model, images, labels, AttackSettings("linf", 0.1, 0, 0), draws())
    left = model(found).argmax(1) == labels
    pgd_left = model(pgd(model, images, labels, AttackSettings("linf", 0.1, 100, 0.05), draws())).argmax(1) == labels
    assert pgd_left.any()
    assert not (left & ~pgd_left).any()
    assert torch.equal(found[left], images[left])


@pytest.mark.parametrize("classes", [4, 5])
def test_few_classes_have_few_targets(
    draws: Callable[..., torch.Generator], monkeypatch: pytest.MonkeyPatch, classes: int
) -> None:
    """On a model that nothing can fool, so that every part runs; but for Square, which takes thousands of queries."""
    monkeypatch.setattr("pyautoattack.square.SquareAttack.attack_single_run", lambda self, x, y: (None, x))
    weight, images = torch.randn(25, classes) * 1e-4, torch.rand(2, 1, 5, 5)
    labels = torch.zeros(2, dtype=torch.int64)
    targets = []

    def model(seen: Tensor) -> Tensor:
        logits = seen.flatten(1) @ weight + torch.arange(classes, 0, -1)
        if logits.requires_grad:
            logits.register_hook(lambda gradient: targets.append(tuple(gradient[0].nonzero().squeeze(1).tolist())))
        return logits

    found = autoattack(model, images, labels, AttackSettings("linf", 0.5, 0, 0), draws())
    assert torch.equal(found, images)
    pairs = {pair for pair in targets if len(pair) == 2}
    assert pairs == {(0, other) for other in range(1, classes)}


@pytest.mark.parametrize("classes", [2, 3])
def test_refuses_too_few_classes(digits: Any, draws: Callable[..., torch.Generator], classes: int) -> None:
    text = f"needs at least 4 classes, this model has {classes}; use pgd and square instead$"
    with pytest.raises(KattnError, match=text):
        autoattack(
            lambda seen: digits.model(seen)[:, :classes],
            digits.images[:4],
            torch.zeros(4, dtype=torch.int64),
            AttackSettings("linf", 0.1, 0, 0),
            draws(),
        )


def test_leaves_warnings_and_tracing_alone(
    draws: Callable[..., torch.Generator], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """pyautoattack warns of probabilities in place of logits, and ends the tracing of a debugger."""
    weight = torch.randn(25, 10)
    images = torch.rand(4, 1, 5, 5)

    def model(seen: Tensor) -> Tensor:
        return (seen.flatten(1) @ weight).softmax(1)

    def tracer(*_: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        autoattack(model, images, model(images).argmax(1), AttackSettings("linf", 0.5, 0, 0), draws())
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert not logging.getLogger("auto-attack").disabled


@pytest.mark.parametrize(
    ("norm", "forward", "backward"), [("linf", 7865, 1910), ("l2", 7865, 1910), ("l1", 7881, 1930)]
)
def test_passes_by_hand(norm: Norm, forward: int, backward: int) -> None:
    """ℓ∞: 13 checks, APGD 1 + 101, targeted 1 + 9 · 102, FAB 1 + 9 · 203, Square 5003; back 101 + 9 · 101 + 900.

    ℓ1: APGD 1 + 5 · 103, targeted 1 + 5 · 104; back 5 · 103 + 5 · 103 + 900.
    """
    assert ATTACKS["autoattack"].passes(AttackSettings(norm, 0.1, 0, 0)) == (forward, backward)


def test_seeds_are_of_31_bits(draws: Callable[..., torch.Generator]) -> None:
    seeds = {seed_from(draws(run)) for run in range(100)}
    assert len(seeds) == 100
    assert 2**30 < max(seeds) < 2**31


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_takes_the_passes_it_says_where_all_fails(draws: Callable[..., torch.Generator], norm: Norm) -> None:
    """A model of ten classes that nothing can fool: every part runs to its end."""
    weight = torch.randn(25, 10) * 1e-4
    passes = {"forward": 0, "backward": 0}

    def backward(gradient: Tensor) -> None:
        passes["backward"] += 1

    def model(images: Tensor) -> Tensor:
        passes["forward"] += 1
        logits = images.flatten(1) @ weight + torch.arange(10, 0, -1)
        if logits.requires_grad:
            logits.register_hook(backward)
        return logits

    settings = AttackSettings(norm, 0.1, 0, 0)
    autoattack(model, torch.rand(1, 1, 5, 5), torch.tensor([0]), settings, draws())
    assert passes == ATTACKS["autoattack"].passes(settings)._asdict()
