"""Noise, value by value, and the distribution of its draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from kattn_cli.data.corruptions import corrupt
from kattn_cli.data.corruptions.noise import draw_gaussian, draw_impulses, draw_photons


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def plain_gaussian(image: np.ndarray, std: float, draws: Tensor) -> np.ndarray:
    return 255 * (image / 255 + std * draws.double().permute(1, 2, 0).numpy())


def test_gaussian_noise(check: Callable[..., None]) -> None:
    check("gaussian_noise", plain_gaussian)


def plain_shot(image: np.ndarray, photons: float, draws: Tensor) -> np.ndarray:
    return 255 * draws.double().permute(1, 2, 0).numpy() / photons


def test_shot_noise(check: Callable[..., None]) -> None:
    check("shot_noise", plain_shot)


def plain_impulse(image: np.ndarray, amount: float, draws: Tensor) -> np.ndarray:
    noisy = image.copy()
    for place in np.ndindex(image.shape):
        struck, colour = draws[:, place[2], place[0], place[1]].tolist()
        if struck < amount:
            noisy[place] = 255 if colour < 0.5 else 0
    return noisy


def test_impulse_noise_is_exact(check: Callable[..., None]) -> None:
    check("impulse_noise", plain_impulse, one=lambda draws, row: draws[:, row], share=1)


def test_draws_have_their_distributions() -> None:
    """100,000 of each; bounds are five standard errors."""
    images = torch.full((1, 1, 250, 400), 0.6)
    normal = draw_gaussian(images, 0.1, generator())
    assert abs(normal.mean()) < 0.016
    assert abs(normal.var() - 1) < 0.023
    for photons in (3, 500):
        counts = draw_photons(images, photons, generator())
        assert torch.equal(counts, counts.round())
        assert abs(counts.mean() / (0.6 * photons) - 1) < 5 * (0.6 * photons * 1e5) ** -0.5
        assert abs(counts.var() / (0.6 * photons) - 1) < 0.035
    uniform = draw_impulses(images, 0.1, generator())
    assert abs(uniform.mean() - 0.5) < 0.0033


def test_impulses_strike_values_not_pixels() -> None:
    grey = torch.full((1, 3, 100, 100), 128 / 255)
    struck = corrupt(grey, "impulse_noise", 5, generator(), "imagenet-c")[0] != 128 / 255
    assert abs(struck.float().mean() - 0.27) < 0.015
    assert abs(struck.all(0).float().mean() - 0.27**3) < 0.01
