"""Loaded image data: splits of pixels in [0, 1], and the mean and deviation of each channel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
import torch.nn.functional as F
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
_RESIZED_AT_ONCE = 256


class Split(Protocol):
    """Images and their labels, in memory or on disk."""

    @property
    def labels(self) -> Tensor:
        """``(n,)`` int64."""

    def __len__(self) -> int: ...

    def subset(self, indices: Tensor) -> Split:
        """Return the images at ``indices`` ``(m,)``, in that order."""

    def first(self, count: int | None) -> Split:
        """Return the first ``count`` images, or all."""

    def to(self, device: torch.device) -> Split:
        """Return the same split, giving its batches on another device."""

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield ``size`` at a time, in order: ``(B, channels, height, width)`` float32 in [0, 1], labels ``(B,)``."""


@dataclass(frozen=True)
class MemorySplit:
    """Decoded images: ``images`` ``(n, channels, height, width)``, uint8, or float32 in [0, 1]; ``labels`` ``(n,)``."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Return the images at ``indices``, float32 in [0, 1], and their labels."""
        return as_pixels(self.images[indices]), self.labels[indices]

    def subset(self, indices: Tensor) -> MemorySplit:
        """See :class:`Split`."""
        return MemorySplit(self.images[indices], self.labels[indices])

    def first(self, count: int | None) -> MemorySplit:
        """See :class:`Split`."""
        return MemorySplit(self.images[:count], self.labels[:count])

    def to(self, device: torch.device) -> MemorySplit:
        """See :class:`Split`."""
        return MemorySplit(self.images.to(device), self.labels.to(device))

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """See :class:`Split`."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def resized(self, size: int) -> MemorySplit:
        """Resize images to ``size × size`` (bilinear, antialiased); uint8 stays uint8."""
        out = self.images.new_empty(*self.images.shape[:2], size, size)
        for start in range(0, len(self), _RESIZED_AT_ONCE):
            chosen = slice(start, start + _RESIZED_AT_ONCE)
            small = as_pixels(self.images[chosen])
            pixels = F.interpolate(small, size=(size, size), mode="bilinear", antialias=True).clamp(0, 1)
            out[chosen] = pixels if out.is_floating_point() else (pixels * 255).round()
        return MemorySplit(out, self.labels)


def as_pixels(images: Tensor) -> Tensor:
    """Return float32 in [0, 1] from uint8 in 0 … 255; float32 passes."""
    return images if images.is_floating_point() else images.float().div_(255)


@dataclass(frozen=True)
class ImageData:
    """A loaded data set. ``mean`` and ``std`` (one value a channel) are those of the training images.

    ``chosen_on``: the split that the best epoch is chosen by. ``unreadable()`` names the images found so far that
    could not be read.
    """

    unit: ClassVar[str] = "images"
    reads: ClassVar[str] = "images"
    name: str
    classes: int
    channels: int
    image_size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    splits: dict[SplitName, Split]
    chosen_on: SplitName = "validation"
    unreadable: Callable[[], list[str]] = list

    def sample(self, count: int, device: torch.device | str) -> Tensor:
        """Return ``count`` images of noise."""
        return torch.rand(count, self.channels, self.image_size, self.image_size, device=device)

    def targets(self, count: int, device: torch.device | str) -> Tensor:
        """Return ``count`` random classes."""
        return torch.randint(self.classes, (count,), device=device)


_CHUNK = 4096
Channels = tuple[float, ...]


def channel_statistics(split: Split, channels: int) -> tuple[Channels, Channels]:
    """Return mean and standard deviation of each channel, of pixels in [0, 1].

    Of images on disk, which are too many to be read for this, those of ImageNet, as the papers' programs use.
    """
    if not isinstance(split, MemorySplit):
        return _imagenet(IMAGENET_DEFAULT_MEAN, channels), _imagenet(IMAGENET_DEFAULT_STD, channels)
    if split.images.is_floating_point():
        # In float64: a float32 sum over all pixels of a data set would lose digits.
        pixels = split.images.double()
        return tuple(pixels.mean((0, 2, 3)).tolist()), tuple(pixels.std((0, 2, 3)).tolist())
    # 256 counts say all of uint8 pixels, and need no float copy of the images.
    counts = _histograms(split.images).double()
    values = torch.arange(256, dtype=torch.float64) / 255
    total = counts.sum(1)
    mean = counts @ values / total
    variance = (counts * (values - mean[:, None]) ** 2).sum(1) / (total - 1)
    return tuple(mean.tolist()), tuple(variance.sqrt().tolist())


def _histograms(images: Tensor) -> Tensor:
    """Return how often each value occurs in each channel of uint8 ``images`` ``(n, C, H, W)``; ``(C, 256)``."""
    counts = torch.zeros(images.shape[1], 256, dtype=torch.int64)
    for chunk in images.split(_CHUNK):
        for channel, pixels in enumerate(chunk.unbind(1)):
            counts[channel] += torch.bincount(pixels.flatten(), minlength=256)
    return counts


def _imagenet(values: Channels, channels: int) -> Channels:
    return values if channels == len(values) else (sum(values) / len(values),) * channels
