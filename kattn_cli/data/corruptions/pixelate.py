"""Pixelate: Pillow's box filter down and up again, on whole batches, level for level."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

_BITS = 22


def pixelate(images: Tensor, factor: float, draws: None) -> Tensor:
    """Images ``(B, C, H, W)`` in [0, 1], ⌊factor · side⌋ pixels a side, shown at their old size."""
    height, width = images.shape[-2:]
    small = box_resize((images * 255).round().int(), int(height * factor), int(width * factor))
    return box_resize(small, height, width).to(images) / 255


def box_resize(levels: Tensor, height: int, width: int) -> Tensor:
    """Pillow's ``resize`` with ``BOX`` of levels 0 … 255, int32: rows first, rounded to whole levels, then columns."""
    wide = _along(levels, *_taps(levels.shape[-1], width))
    return _along(wide.mT, *_taps(levels.shape[-2], height)).mT


def _along(levels: Tensor, index: Tensor, weights: Tensor) -> Tensor:
    device = levels.device
    total = sum(levels[..., taken] * weight for taken, weight in zip(index.to(device), weights.to(device), strict=True))
    return ((total + (1 << _BITS - 1)) >> _BITS).clamp(0, 255)


@lru_cache(maxsize=64)
def _taps(old: int, new: int) -> tuple[Tensor, Tensor]:
    """Which pixels each new one is made of, and how much of each in 2⁻²²: both ``(taps, new)``.

    A pixel counts in full if its centre lies in (centre − scale/2, centre + scale/2] of the new one, otherwise not.
    """
    scale = old / new
    reach = max(scale, 1) / 2
    centre = (torch.arange(new, dtype=torch.float64) + 0.5) * scale
    first = (centre - reach + 0.5).clamp(min=0).long()
    last = (centre + reach + 0.5).clamp(max=old).long()
    index = first + torch.arange(int((last - first).max()))[:, None]
    distance = (index - centre + 0.5) * (1 / max(scale, 1))
    inside = (index < last) & (distance > -0.5) & (distance <= 0.5)
    weights = (inside / inside.sum(0) * (1 << _BITS) + 0.5).floor().int()
    return index.clamp(max=old - 1), weights
