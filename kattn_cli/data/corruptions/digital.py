"""Brightness, contrast and JPEG compression. Images ``(B, C, H, W)`` in [0, 1]."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import torch
from PIL import Image
from torch import Tensor


def brightness(images: Tensor, amount: float, draws: None) -> Tensor:
    """The value of HSV, a pixel's largest channel, raised by ``amount`` up to 1; hue and saturation stay.

    So one channel is raised itself, and any other number of channels goes as three.
    """
    value = images.amax(1, keepdim=True)
    raised = (value + amount).clamp(max=1)
    lit = value > 0
    return torch.where(lit, images * (raised / torch.where(lit, value, 1)), raised)


def contrast(images: Tensor, factor: float, draws: None) -> Tensor:
    """``factor`` of each pixel's distance from its channel's mean."""
    mean = images.mean((2, 3), keepdim=True)
    return (images - mean) * factor + mean


def jpeg_compression(images: Tensor, quality: int, draws: None) -> Tensor:
    """Through a JPEG file of ``quality``, written and read by Pillow on the CPU.

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
