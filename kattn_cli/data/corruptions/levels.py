"""Between pixels in [0, 1] and the 256 levels of an 8-bit image."""

from __future__ import annotations

import torch
from torch import Tensor


def precise(pixels: Tensor) -> Tensor:
    """In float64, as the published programs calculate, where the device has it (Apple's GPUs do not)."""
    return pixels if pixels.device.type == "mps" else pixels.double()


def rounded(pixels: Tensor) -> Tensor:
    """The nearest of 0/255 … 255/255: what an image file holds, and what ImageMagick returns."""
    return (pixels * 255).round().clamp(0, 255) / 255


def truncated(pixels: Tensor) -> Tensor:
    """The level below, as numpy's ``uint8`` has it, so that noise of mean 0 darkens by half a level.

    A level missed by rounding alone still counts as reached: 99.99999999 is to stay 100.
    """
    slack = 1e-6 if pixels.dtype == torch.float64 else 1e-3
    return (pixels * 255 + slack).floor().clamp(0, 255) / 255
