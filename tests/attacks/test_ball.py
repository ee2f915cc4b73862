"""The ε-ball and the box, by hand."""

from __future__ import annotations

import math
import re

import pytest
import torch

from kattn_cli.attacks import AttackSettings, Norm
from kattn_cli.attacks.ball import check_bounds, distances, project

NORMS: tuple[Norm, ...] = ("linf", "l2", "l1")


def settings(norm: Norm, epsilon: float) -> AttackSettings:
    return AttackSettings(norm, epsilon, 1, 1)


def test_distances_by_hand() -> None:
    images = torch.full((2, 1, 1, 2), 0.5)
    adversarial = torch.tensor([[0.8, 0.1], [0.5, 0.5]]).view(2, 1, 1, 2)
    found = distances(adversarial, images)
    for norm, expected in (("linf", 0.4), ("l2", 0.5), ("l1", 0.7)):
        torch.testing.assert_close(found[norm], torch.tensor([expected, 0.0], dtype=torch.float64), rtol=0, atol=1e-7)  # type: ignore[index]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("epsilon", [1 / 255, 0.5, 4.0])
def test_projected_images_pass_the_check(norm: Norm, epsilon: float) -> None:
    images = torch.rand(8, 3, 32, 32)
    wild = images + torch.randn_like(images) * torch.logspace(-5, 1, 8).view(8, 1, 1, 1)
    found = project(wild, images, settings(norm, epsilon))
    check_bounds("pgd", found, images, settings(norm, epsilon))
    assert torch.equal(project(images, images, settings(norm, epsilon)), images)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_projection_onto_the_ball_is_the_nearest_point(norm: Norm) -> None:
    """No point of the ball, inside the box, is nearer: the angle at the projection is never acute."""
    images = torch.full((50, 1, 3, 3), 0.5, dtype=torch.float64)
    wild = images + 0.3 * torch.randn_like(images)
    found = project(wild, images, settings(norm, 0.2))
    others = project(images + torch.randn_like(images), images, settings(norm, 0.2))
    assert (((wild - found) * (others - found)).sum((1, 2, 3)) <= 1e-12).all()


@pytest.mark.parametrize(("norm", "just", "beyond"), [("linf", 5e-7, 1.5e-6), ("l2", 1e-7, 1e-5), ("l1", 5e-7, 1e-5)])
def test_allows_rounding_and_no_more(norm: Norm, just: float, beyond: float) -> None:
    images = torch.full((2, 1, 2, 2), 0.25, dtype=torch.float64)

    def moved(far: float) -> torch.Tensor:
        adversarial = images.clone()
        adversarial[1, 0, 0, 0] += far
        return adversarial

    check_bounds("pgd", moved(0.1 + just), images, settings(norm, 0.1))
    text = f"pgd left its ball: {norm} distance {0.1 + beyond:.9g} > ε 0.1"
    with pytest.raises(AssertionError, match=re.escape(text)):
        check_bounds("pgd", moved(0.1 + beyond), images, settings(norm, 0.1))


def test_allows_more_where_the_numbers_are_larger_than_pixels() -> None:
    images = torch.zeros(1, 1, 1, 2, dtype=torch.float64)
    check_bounds("pgd", images + 0.1 + 3e-6, images, settings("linf", 0.1), unit=4)
    with pytest.raises(AssertionError, match="left its ball"):
        check_bounds("pgd", images + 0.1 + 5e-6, images, settings("linf", 0.1), unit=4)


@pytest.mark.parametrize("pixel", [-1e-7, 1 + 2e-7])
def test_allows_nothing_beyond_the_box(pixel: float) -> None:
    images = torch.full((1, 1, 1, 2), round(pixel), dtype=torch.float32)
    adversarial = torch.tensor([pixel, 0.5]).view(1, 1, 1, 2)
    with pytest.raises(AssertionError, match=r"^noise left \[0, 1\]: pixels in \["):
        check_bounds("noise", adversarial, images, settings("linf", 1))
    check_bounds("noise", adversarial, images, settings("linf", 1), box=False)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_refuses_what_is_no_number(wrong: float) -> None:
    images = torch.rand(1, 1, 2, 2)
    with pytest.raises(AssertionError, match=r"^cw returned pixels that are not finite numbers$"):
        check_bounds("cw", images * wrong, images, settings("l2", math.inf))
