"""Gaussian, shot and impulse noise: each value of each channel on its own. Images ``(B, C, H, W)`` in [0, 1]."""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.data.corruptions.draws import uniform


def draw_gaussian(images: Tensor, std: float, generator: torch.Generator) -> Tensor:
    """N(0, 1), of the images' shape."""
    return torch.randn(images.shape, generator=generator, dtype=torch.float64)


def gaussian_noise(images: Tensor, std: float, draws: Tensor) -> Tensor:
    """``x + std · n``."""
    return images + std * draws.to(images)


def draw_photons(images: Tensor, photons: float, generator: torch.Generator) -> Tensor:
    """How many photons each pixel catches: Poisson of mean ``photons · x``."""
    return torch.poisson(images.cpu().double() * photons, generator=generator)


def shot_noise(images: Tensor, photons: float, draws: Tensor) -> Tensor:
    """The count of each pixel, ``photons`` of them being white."""
    return draws.to(images) / photons


def draw_impulses(images: Tensor, amount: float, generator: torch.Generator) -> Tensor:
    """Two of U(0, 1) for each value, ``(2, B, C, H, W)``."""
    return uniform((2, *images.shape), 0, 1, generator)


def impulse_noise(images: Tensor, amount: float, draws: Tensor) -> Tensor:
    """``amount`` of all values become 0 or 1, either as likely as the other."""
    struck, white = (draws < torch.tensor([amount, 0.5]).view(2, 1, 1, 1, 1)).to(images.device)
    return torch.where(struck, white.to(images), images)
