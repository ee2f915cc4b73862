"""Brightness, contrast, pixelation and JPEG compression. Images ``(B, C, H, W)`` in [0, 1]."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from kattn_cli.data.corruptions.corruption import Corruption

_BITS = 22
"""Fraction bits of the weights in Pillow's box filter."""


def brightness(images: Tensor, amount: float, draws: None) -> Tensor:
    """Raise the value of HSV, a pixel's largest channel, by ``amount`` up to 1; hue and saturation stay.

    So one channel is raised itself, and any other number of channels goes as three.
    """
    value = images.amax(1, keepdim=True)
    raised = (value + amount).clamp(max=1)
    lit = value > 0
    # Black has no hue to keep: it becomes grey, and 0 / 0 is avoided.
    return torch.where(lit, images * (raised / torch.where(lit, value, 1)), raised)


def contrast(images: Tensor, factor: float, draws: None) -> Tensor:
    """Shrink each pixel's distance from its channel's mean to ``factor`` of it."""
    mean = images.mean((2, 3), keepdim=True)
    return (images - mean) * factor + mean


def jpeg_compression(images: Tensor, quality: int, draws: None) -> Tensor:
    """Write images as JPEG files of ``quality`` and read them again, by Pillow on the CPU.

    Three channels are a colour image, any other number as many grey ones.
    """
    levels = (images * 255).round().byte().cpu()
    if levels.shape[1] == 3:
        files = levels.permute(0, 2, 3, 1).numpy()
        read = torch.from_numpy(np.stack([_through_jpeg(pixels, quality) for pixels in files])).permute(0, 3, 1, 2)
    else:
        files = levels.flatten(0, 1).numpy()
        read = torch.from_numpy(np.stack([_through_jpeg(pixels, quality) for pixels in files])).view_as(levels)
    return read.to(images) / 255


def _through_jpeg(pixels: np.ndarray, quality: int) -> np.ndarray:
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "JPEG", quality=quality)
    with Image.open(file) as image:
        return np.asarray(image)


def pixelate(images: Tensor, factor: float, draws: None) -> Tensor:
    """Shrink images ``(B, C, H, W)`` in [0, 1] to ⌊factor · side⌋ pixels a side, shown at their old size."""
    height, width = images.shape[-2:]
    small = box_resize((images * 255).round().int(), int(height * factor), int(width * factor))
    return box_resize(small, height, width).to(images) / 255


def box_resize(levels: Tensor, height: int, width: int) -> Tensor:
    """Return Pillow's ``resize`` with ``BOX`` of levels 0 … 255, int32: rows, rounded to whole levels, then columns."""
    wide = _along(levels, *_taps(levels.shape[-1], width))
    return _along(wide.mT, *_taps(levels.shape[-2], height)).mT


def _along(levels: Tensor, index: Tensor, weights: Tensor) -> Tensor:
    device = levels.device
    total = sum(levels[..., taken] * weight for taken, weight in zip(index.to(device), weights.to(device), strict=True))
    # Integers throughout, with half a level added before the shift: Pillow's own rounding.
    return ((total + (1 << _BITS - 1)) >> _BITS).clamp(0, 255)


@lru_cache(maxsize=64)
def _taps(old: int, new: int) -> tuple[Tensor, Tensor]:
    """Return which pixels each new one is made of, and how much of each in 2⁻²²: both ``(taps, new)``.

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


BRIGHTNESS = Corruption(
    description="more light",
    position=10,
    apply=brightness,
    imagenet_c=(0.1, 0.2, 0.3, 0.4, 0.5),
    cifar_c=(0.05, 0.1, 0.15, 0.2, 0.3),
    alexnet_error=56.4592,
)

CONTRAST = Corruption(
    description="less contrast",
    position=11,
    apply=contrast,
    imagenet_c=(0.4, 0.3, 0.2, 0.1, 0.05),
    cifar_c=(0.75, 0.5, 0.4, 0.3, 0.15),
    alexnet_error=85.3204,
)

PIXELATE = Corruption(
    description="too few pixels, shown large",
    position=13,
    apply=pixelate,
    imagenet_c=(0.6, 0.5, 0.4, 0.3, 0.25),
    cifar_c=(0.95, 0.9, 0.85, 0.75, 0.65),
    alexnet_error=71.784,
)

JPEG_COMPRESSION = Corruption(
    description="JPEG of low quality",
    position=14,
    apply=jpeg_compression,
    imagenet_c=(25, 18, 15, 10, 7),
    cifar_c=(80, 65, 58, 50, 40),
    alexnet_error=60.65,
)
