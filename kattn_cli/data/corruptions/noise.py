"""Gaussian, shot and impulse noise: each value of each channel on its own. Images ``(B, C, H, W)`` in [0, 1]."""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.data.corruptions.corruption import Corruption, uniform


def draw_gaussian(images: Tensor, std: float, generator: torch.Generator) -> Tensor:
    """Draw N(0, 1) of the images' shape."""
    return torch.randn(images.shape, generator=generator, dtype=torch.float64)


def gaussian_noise(images: Tensor, std: float, draws: Tensor) -> Tensor:
    """Return ``x + std · n``."""
    return images + std * draws.to(images)


def draw_photons(images: Tensor, photons: float, generator: torch.Generator) -> Tensor:
    """Draw how many photons each pixel catches: Poisson of mean ``photons · x``."""
    return torch.poisson(images.cpu().double() * photons, generator=generator)


def shot_noise(images: Tensor, photons: float, draws: Tensor) -> Tensor:
    """Return the counted photons of each pixel over ``photons``, which are white."""
    return draws.to(images) / photons


def draw_impulses(images: Tensor, amount: float, generator: torch.Generator) -> Tensor:
    """Draw two of U(0, 1) for each value, ``(2, B, C, H, W)``."""
    return uniform((2, *images.shape), 0, 1, generator)


def impulse_noise(images: Tensor, amount: float, draws: Tensor) -> Tensor:
    """Set a share ``amount`` of all values to 0 or 1, either as likely as the other."""
    struck, white = (draws < torch.tensor([amount, 0.5]).view(2, 1, 1, 1, 1)).to(images.device)
    return torch.where(struck, white.to(images), images)


GAUSSIAN_NOISE = Corruption(
    description="normal noise, as in poor light",
    position=0,
    apply=gaussian_noise,
    draw=draw_gaussian,
    imagenet_c=(0.08, 0.12, 0.18, 0.26, 0.38),
    cifar_c=(0.04, 0.06, 0.08, 0.09, 0.10),
    alexnet_error=88.6428,
)

SHOT_NOISE = Corruption(
    description="Poisson noise, of light's being counted",
    position=1,
    apply=shot_noise,
    draw=draw_photons,
    imagenet_c=(60, 25, 12, 5, 3),
    cifar_c=(500, 250, 100, 75, 50),
    alexnet_error=89.4468,
)

IMPULSE_NOISE = Corruption(
    description="salt and pepper, as of faulty bits",
    position=2,
    apply=impulse_noise,
    draw=draw_impulses,
    imagenet_c=(0.03, 0.06, 0.09, 0.17, 0.27),
    cifar_c=(0.01, 0.02, 0.03, 0.05, 0.07),
    alexnet_error=92.264,
)
