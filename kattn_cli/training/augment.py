"""Augmentation of whole batches, on the device they are on."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def random_crop(images: Tensor, padding: int) -> Tensor:
    """Each image moved by up to ``padding`` pixels each way, zeros coming in; ``(B, C, H, W)``."""
    count, _, height, width = images.shape
    padded = F.pad(images, (padding,) * 4)
    top, left = torch.randint(0, 2 * padding + 1, (2, count, 1), device=images.device)
    rows = (top + torch.arange(height, device=images.device))[:, None, :, None]
    columns = (left + torch.arange(width, device=images.device))[:, None, None, :]
    sample = torch.arange(count, device=images.device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=images.device)[None, :, None, None]
    return padded[sample, channel, rows, columns]
