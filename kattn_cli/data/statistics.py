"""Mean and standard deviation of the training images, which the model normalises its input by."""

from __future__ import annotations

import torch
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor

from kattn_cli.data.images import MemorySplit, Split

_CHUNK = 4096
Channels = tuple[float, ...]


def channel_statistics(split: Split, channels: int) -> tuple[Channels, Channels]:
    """Mean and standard deviation of each channel, of pixels in [0, 1].

    Of images on disk, which are too many to be read for this, those of ImageNet, as the papers' programs use.
    """
    if not isinstance(split, MemorySplit):
        return _imagenet(IMAGENET_DEFAULT_MEAN, channels), _imagenet(IMAGENET_DEFAULT_STD, channels)
    if split.images.is_floating_point():
        pixels = split.images.double()
        return tuple(pixels.mean((0, 2, 3)).tolist()), tuple(pixels.std((0, 2, 3)).tolist())
    counts = _histograms(split.images).double()
    values = torch.arange(256, dtype=torch.float64) / 255
    total = counts.sum(1)
    mean = counts @ values / total
    variance = (counts * (values - mean[:, None]) ** 2).sum(1) / (total - 1)
    return tuple(mean.tolist()), tuple(variance.sqrt().tolist())


def _histograms(images: Tensor) -> Tensor:
    """How often each value occurs in each channel of uint8 ``images`` ``(n, C, H, W)``; ``(C, 256)``."""
    counts = torch.zeros(images.shape[1], 256, dtype=torch.int64)
    for chunk in images.split(_CHUNK):
        for channel, pixels in enumerate(chunk.unbind(1)):
            counts[channel] += torch.bincount(pixels.flatten(), minlength=256)
    return counts


def _imagenet(values: Channels, channels: int) -> Channels:
    return values if channels == len(values) else (sum(values) / len(values),) * channels
