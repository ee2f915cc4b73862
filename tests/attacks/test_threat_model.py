"""The reference threat model (ε in normalised units, no clipping), and restarts, which keep the worst run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kattn_cli.attacks import ATTACKS, AttackSettings, Norm
from kattn_cli.attacks.ball import Model, distances
from kattn_cli.attacks.fgsm import perturb as fgsm
from kattn_cli.attacks.noise import perturb as noise
from kattn_cli.attacks.pgd import perturb as pgd
from kattn_cli.attacks.threat_model import UNITS, Box, Convention, attack_in, check_in, distances_in, worst_of

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
EVEN = (0.5, 0.5, 0.5), (0.225, 0.225, 0.225)


def statistics(values: tuple[tuple[float, ...], tuple[float, ...]]) -> tuple[Tensor, Tensor]:
    mean, std = (torch.tensor(part).view(-1, 1, 1) for part in values)
    return mean, std


@pytest.fixture
def model() -> nn.Module:
    inner = nn.Sequential(nn.Flatten(), nn.Linear(192, 32), nn.GELU(), nn.Linear(32, 5))
    return inner.double().eval().requires_grad_(False)


@pytest.fixture
def images() -> Tensor:
    return 0.1 + 0.8 * torch.rand(12, 3, 8, 8, dtype=torch.float64)


LABELS = torch.arange(12) % 5


@pytest.mark.parametrize("attack", [fgsm, pgd])
def test_one_over_255_normalised_is_std_over_255_in_pixels(
    attack: Any, model: nn.Module, images: Tensor, draws: Callable[..., torch.Generator]
) -> None:
    """Where clipping does not bind and all channels have one std, it is the pixel attack at 0.225/255."""
    mean, std = (part.double() for part in statistics(EVEN))
    normalised, pixels = (AttackSettings("linf", epsilon / 255, 20, 0.15) for epsilon in (1, 0.225))
    found = attack_in("reference", attack, model, images, LABELS, normalised, draws(), mean, std)
    expected = attack(model, images, LABELS, pixels, draws())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-8)
    assert distances(found, images)["linf"].max() == pytest.approx(0.225 / 255, rel=1e-5)


def test_fgsm_by_hand(model: nn.Module, images: Tensor, draws: Callable[..., torch.Generator]) -> None:
    """x + ε · std · sign of the gradient, channel by channel, and no pixel is clipped."""
    mean, std = statistics(IMAGENET)
    images[0] = torch.rand(3, 8, 8).round()
    found = attack_in("reference", fgsm, model, images, LABELS, AttackSettings("linf", 0.5, 1, 1), draws(), mean, std)
    leaf = images.clone().requires_grad_()
    nn.functional.cross_entropy(model(leaf), LABELS, reduction="sum").backward()
    assert leaf.grad is not None
    torch.testing.assert_close(found, images + 0.5 * std.double() * leaf.grad.sign(), rtol=0, atol=1e-9)
    assert found.min() < 0
    assert found.max() > 1


@pytest.mark.parametrize("size", [8, 96])
@pytest.mark.parametrize(("norm", "epsilon"), [("linf", 1 / 255), ("linf", 2.0), ("l2", 1 / 255), ("l2", 3.0)])
def test_images_use_their_budget_and_pass_the_check(
    norm: Norm, epsilon: float, size: int, draws: Callable[..., torch.Generator]
) -> None:
    mean, std = statistics(IMAGENET)
    weight = torch.randn(3 * size**2, 5)
    images = torch.rand(4, 3, size, size)
    images[0] = images[0].round()
    settings = AttackSettings(norm, epsilon, 20, 0.15)
    found = attack_in(
        "reference", pgd, lambda seen: seen.flatten(1) @ weight, images, LABELS[:4], settings, draws(), mean, std
    )
    check_in("reference", "pgd", found, images, settings, mean, std)
    far = distances_in("reference", found, images, mean, std)[norm]
    assert (far > 0.99 * epsilon).all()
    with pytest.raises(AssertionError, match="pgd left its ball"):
        check_in("reference", "pgd", images + 1.02 * (found - images), images, settings, mean, std)


def test_an_image_does_not_depend_on_its_batch(
    model: nn.Module, images: Tensor, draws: Callable[..., torch.Generator]
) -> None:
    mean, std = statistics(IMAGENET)
    settings = AttackSettings("linf", 0.1, 5, 0.3)

    def start_at_image(
        model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
    ) -> Tensor:
        return pgd(model, images, labels, settings, generator, random_start=False)

    def run(first: int, last: int) -> Tensor:
        seen, labels = images[first:last], LABELS[first:last]
        return attack_in("reference", start_at_image, model, seen, labels, settings, draws(), mean, std)

    torch.testing.assert_close(run(0, 12)[3:4], run(3, 4), rtol=0, atol=1e-12)


def test_paper_is_the_attack_itself(model: nn.Module, images: Tensor, draws: Callable[..., torch.Generator]) -> None:
    mean, std = statistics(IMAGENET)
    settings = AttackSettings("linf", 0.3, 3, 0.3)
    found = attack_in("paper", pgd, model, images, LABELS, settings, draws(), mean, std)
    assert torch.equal(found, pgd(model, images, LABELS, settings, draws()))
    assert torch.equal(distances_in("paper", found, images, mean, std)["l2"], distances(found, images)["l2"])
    with pytest.raises(AssertionError, match=r"noise left \[0, 1\]"):
        check_in("paper", "noise", images + 0.5, images, AttackSettings("linf", 1, 1, 1), mean, std)


def test_smallest_perturbation_is_smallest_in_normalised_units(
    digits: Any, draws: Callable[..., torch.Generator]
) -> None:
    """With one std, the nearest image is the same in both units, its distance 1/std times as far."""
    mean, std = torch.tensor(0.3).view(1, 1, 1), torch.tensor(0.25).view(1, 1, 1)
    images, labels = digits.images[:20], digits.labels[:20]
    settings = AttackSettings("l2", math.inf, 80, 0.05)
    near: dict[Convention, Tensor] = {}
    for convention in get_args(Convention):
        found = attack_in(convention, ATTACKS["cw"].perturb, digits.model, images, labels, settings, draws(), mean, std)
        check_in(convention, "cw", found, images, settings, mean, std)
        assert (digits.model(found).argmax(1) != labels).all()
        near[convention] = distances_in(convention, found, images, mean, std)["l2"]
    assert float(near["reference"].mean() / near["paper"].mean()) == pytest.approx(4, rel=0.02)


def test_libraries_see_a_box(digits: Any, draws: Callable[..., torch.Generator]) -> None:
    """AutoAttack and Square in normalised units: at 1/std of the pixels' ε, nearly what they do in pixels."""
    mean, std = torch.tensor(0.3).view(1, 1, 1), torch.tensor(0.25).view(1, 1, 1)
    images, labels = digits.images[:12], digits.labels[:12]
    for name in ("autoattack", "square", "sld", "noise", "spsa"):
        attack = ATTACKS[name]
        norm = attack.norms[0]
        settings = AttackSettings(
            norm,
            {"linf": 1.2, "l1": 40.0}[norm],
            min(attack.steps, 200 if name == "square" else 20),
            attack.relative_step,
        )
        found = attack_in("reference", attack.perturb, digits.model, images, labels, settings, draws(), mean, std)
        check_in("reference", name, found, images, settings, mean, std)
        if attack.perturb is not noise:
            assert (digits.model(found).argmax(1) == labels).double().mean() < 0.3


def test_units() -> None:
    assert UNITS == {"paper": "pixels in [0, 1]", "reference": "normalised"}
    assert set(UNITS) == set(get_args(Convention))


def test_the_box_holds_all_pixels_whatever_the_rounding() -> None:
    box = Box.around_pixels(*statistics(IMAGENET), epsilon=0.0)
    colours = torch.tensor([0.0, 0.25, 1.0]).view(3, 1, 1, 1).expand(3, 3, 1, 1)
    assert torch.allclose(box.leave(box.enter(colours)), colours, atol=1e-6)
    for beyond in (-1.0, 2.0):
        entered = box.enter(torch.full((1, 3, 1, 1), beyond))
        assert entered.min() >= 0
        assert entered.max() <= 1
        assert ((entered == 0) | (entered == 1)).any()


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


def test_of_runs_of_one_loss_the_first_is_kept(model: nn.Module, images: Tensor, draws: Any) -> None:
    runs = iter([images + 0.01, images + 0.02])

    def constant(seen: Tensor) -> Tensor:
        return torch.tensor([[1.0, 0.0]]).expand(len(seen), 2)

    labels = torch.zeros(len(images), dtype=torch.int64)
    kept = worst_of(lambda *_: next(runs), 2)(constant, images, labels, AttackSettings("linf", 9, 1, 1), draws())
    assert torch.equal(kept, images + 0.01)


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
