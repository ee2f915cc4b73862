"""Snow and fog. Images ``(B, C, H, W)`` in [0, 1]."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.data.corruptions.blur import Motion, moved, zoomed
from kattn_cli.data.corruptions.corruption import Corruption, rounded, truncated, uniform
from kattn_cli.data.corruptions.plasma import plasma, plasma_draws


class Snow(NamedTuple):
    """Flakes: noise N(``mean``, ``std``²), zoomed, what is below ``threshold`` removed, then in ``motion``.

    ``keep``: the image's share; the rest is the image whitened.
    """

    mean: float
    std: float
    zoom: float
    threshold: float
    motion: Motion
    keep: float


class Fog(NamedTuple):
    """The share of the plasma that is added, and what its roughness is divided by from one scale to the next."""

    strength: float
    decay: float


_LUMA = (0.299, 0.587, 0.114)


class SnowDraws(NamedTuple):
    """``noise`` ``(B, 1, H, W)``, N(0, 1); ``degrees`` ``(B,)``, U(−135, −45)."""

    noise: Tensor
    degrees: Tensor


def draw_snow(images: Tensor, parameters: Snow, generator: torch.Generator) -> SnowDraws:
    """Draw one layer of flakes for each image."""
    batch, _, height, width = images.shape
    noise = torch.randn(batch, 1, height, width, generator=generator, dtype=torch.float64)
    return SnowDraws(noise, uniform((batch,), -135, -45, generator))


def snow(images: Tensor, parameters: Snow, draws: SnowDraws) -> Tensor:
    """Whiten the image in part, and add falling flakes, and the same flakes turned by 180°."""
    flakes = zoomed(parameters.mean + parameters.std * draws.noise.to(images), parameters.zoom)
    # Both steps go through 8 bits in the published program: Pillow's image here, ImageMagick's below.
    flakes = truncated(flakes * (flakes >= parameters.threshold))
    layer = rounded(moved(flakes, parameters.motion, draws.degrees))
    white = torch.maximum(images, grey(images) * 1.5 + 0.5)
    return parameters.keep * images + (1 - parameters.keep) * white + layer + layer.flip(2, 3)


def grey(images: Tensor) -> Tensor:
    """Return ``(B, 1, H, W)``: the luma of three channels, the mean of any other number."""
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    return sum(weight * channel for weight, channel in zip(_LUMA, images.split(1, 1), strict=True))


def draw_fog(images: Tensor, parameters: Fog, generator: torch.Generator) -> Tensor:
    """Draw a cloud as large as the next power of two."""
    return plasma_draws(len(images), max(images.shape[-2:]), generator)


def fog(images: Tensor, parameters: Fog, draws: Tensor) -> Tensor:
    """Add a cloud, and darken all so that the brightest possible value stays the image's."""
    height, width = images.shape[-2:]
    cloud = plasma(draws, parameters.decay)[:, None, :height, :width].to(images)
    brightest = images.amax((1, 2, 3), keepdim=True)
    return (images + parameters.strength * cloud) * brightest / (brightest + parameters.strength)


SNOW = Corruption(
    description="falling snow",
    position=7,
    apply=snow,
    draw=draw_snow,
    imagenet_c=(
        Snow(0.1, 0.3, 3, 0.5, Motion(10, 4), 0.8),
        Snow(0.2, 0.3, 2, 0.5, Motion(12, 4), 0.7),
        Snow(0.55, 0.3, 4, 0.9, Motion(12, 8), 0.7),
        Snow(0.55, 0.3, 4.5, 0.85, Motion(12, 8), 0.65),
        Snow(0.55, 0.3, 2.5, 0.85, Motion(12, 12), 0.55),
    ),
    cifar_c=(
        Snow(0.1, 0.2, 1, 0.6, Motion(8, 3), 0.95),
        Snow(0.1, 0.2, 1, 0.5, Motion(10, 4), 0.9),
        Snow(0.15, 0.3, 1.75, 0.55, Motion(10, 4), 0.9),
        Snow(0.25, 0.3, 2.25, 0.6, Motion(12, 6), 0.85),
        Snow(0.3, 0.3, 1.25, 0.65, Motion(14, 12), 0.8),
    ),
    alexnet_error=86.6816,
)

FOG = Corruption(
    description="drifting clouds of fog",
    position=9,
    apply=fog,
    draw=draw_fog,
    imagenet_c=(Fog(1.5, 2), Fog(2, 2), Fog(2.5, 1.7), Fog(2.5, 1.5), Fog(3, 1.4)),
    cifar_c=(Fog(0.2, 3), Fog(0.5, 3), Fog(0.75, 2.5), Fog(1, 2), Fog(1.5, 1.75)),
    alexnet_error=81.9324,
)
