"""Snow and fog. Images ``(B, C, H, W)`` in [0, 1]."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.data.corruptions.blur import moved, zoomed
from kattn_cli.data.corruptions.draws import uniform
from kattn_cli.data.corruptions.levels import rounded, truncated
from kattn_cli.data.corruptions.parameters import Fog, Snow
from kattn_cli.data.corruptions.plasma import plasma, plasma_draws

_LUMA = (0.299, 0.587, 0.114)


class SnowDraws(NamedTuple):
    """``noise`` ``(B, 1, H, W)``, N(0, 1); ``degrees`` ``(B,)``, U(−135, −45)."""

    noise: Tensor
    degrees: Tensor


def draw_snow(images: Tensor, parameters: Snow, generator: torch.Generator) -> SnowDraws:
    """One layer of flakes for each image."""
    batch, _, height, width = images.shape
    noise = torch.randn(batch, 1, height, width, generator=generator, dtype=torch.float64)
    return SnowDraws(noise, uniform((batch,), -135, -45, generator))


def snow(images: Tensor, parameters: Snow, draws: SnowDraws) -> Tensor:
    """The image whitened in part, with falling flakes, and the same flakes turned by 180°."""
    flakes = zoomed(parameters.mean + parameters.std * draws.noise.to(images), parameters.zoom)
    flakes = truncated(flakes * (flakes >= parameters.threshold))
    layer = rounded(moved(flakes, parameters.motion, draws.degrees))
    white = torch.maximum(images, grey(images) * 1.5 + 0.5)
    return parameters.keep * images + (1 - parameters.keep) * white + layer + layer.flip(2, 3)


def grey(images: Tensor) -> Tensor:
    """``(B, 1, H, W)``: the luma of three channels, the mean of any other number."""
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    return sum(weight * channel for weight, channel in zip(_LUMA, images.split(1, 1), strict=True))


def draw_fog(images: Tensor, parameters: Fog, generator: torch.Generator) -> Tensor:
    """For a cloud as large as the next power of two."""
    return plasma_draws(len(images), max(images.shape[-2:]), generator)


def fog(images: Tensor, parameters: Fog, draws: Tensor) -> Tensor:
    """A cloud added, and all darkened so that the brightest possible value stays the image's."""
    height, width = images.shape[-2:]
    cloud = plasma(draws, parameters.decay)[:, None, :height, :width].to(images)
    brightest = images.amax((1, 2, 3), keepdim=True)
    return (images + parameters.strength * cloud) * brightest / (brightest + parameters.strength)
