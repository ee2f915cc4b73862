"""Frost that needs no photographs: feathers of ice over clouds, the same at every call."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from kattn_cli.data.corruptions.draws import uniform
from kattn_cli.data.corruptions.plasma import plasma, plasma_draws

_SIZE = 512
_SEED = 0
_LAYERS = 20
_FEATHERS_A_LAYER = 120
_ROUGHNESS = 1.3
_CLOUDS = 0.4
_TINTS = (
    ((0.38, 0.56, 0.63), 0.08),
    ((0.79, 0.81, 0.84), 0.09),
    ((0.74, 0.80, 0.85), 0.09),
    ((0.54, 0.60, 0.65), 0.12),
    ((0.44, 0.48, 0.53), 0.17),
)
"""Mean of red, green and blue, and standard deviation: about those of ImageNet-C's five photographs."""


@lru_cache(maxsize=1)
def ice_textures() -> tuple[Tensor, ...]:
    """Five textures ``(3, 512, 512)`` in [0, 1], on the CPU."""
    generator = torch.Generator().manual_seed(_SEED)
    return tuple(_texture(tint, contrast, generator) for tint, contrast in _TINTS)


def _texture(tint: tuple[float, ...], contrast: float, generator: torch.Generator) -> Tensor:
    clouds = plasma(plasma_draws(1, _SIZE, generator), _ROUGHNESS)[0]
    height = _standard(_crystals(generator)) + _CLOUDS * _standard(clouds.float())
    return (torch.tensor(tint).view(3, 1, 1) + contrast * _standard(height)).clamp(0, 1)


def _crystals(generator: torch.Generator) -> Tensor:
    """The brightest of layers of feathers, each of which has one shape, at random places and of random brightness."""
    brightest = torch.zeros(_SIZE, _SIZE)
    for _ in range(_LAYERS):
        angle, length, spacing, breadth = uniform((4,), 0, 1, generator).tolist()
        shape = _feather(2 * math.pi * angle, 30 + 90 * length, 4 + 5 * spacing, 0.06 + 0.14 * breadth)
        places = torch.zeros(_SIZE**2)
        chosen = torch.randint(_SIZE**2, (_FEATHERS_A_LAYER,), generator=generator)
        places[chosen] = uniform((_FEATHERS_A_LAYER,), 0.3, 1, generator).float()
        spectrum = torch.fft.rfft2(places.view(_SIZE, _SIZE)) * torch.fft.rfft2(shape)
        brightest = torch.maximum(brightest, torch.fft.irfft2(spectrum, s=(_SIZE, _SIZE)))
    return brightest


def _feather(angle: float, length: float, spacing: float, breadth: float) -> Tensor:
    """A stem of ``length`` pixels from the origin of the torus, with barbs every ``spacing``, narrowing to its tip."""
    offset = torch.fft.fftfreq(_SIZE, 1 / _SIZE)
    along = offset * math.cos(angle) + offset[:, None] * math.sin(angle)
    across = (offset[:, None] * math.cos(angle) - offset * math.sin(angle)).abs()
    vane = (along > 0) & (across < breadth * (length - along))
    barbs = 0.5 + 0.5 * torch.cos(2 * math.pi * (along - across) / spacing)
    stem = torch.exp(-((across / 1.2) ** 2))
    return vane * (1 - along / length).clamp(min=0).sqrt() * torch.maximum(stem, 0.7 * barbs)


def _standard(values: Tensor) -> Tensor:
    return (values - values.mean()) / values.std()
