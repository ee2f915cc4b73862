"""What every image data set is to the rest of kattn: splits that give batches of pixels in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
import torch.nn.functional as F
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
        """The images at ``indices`` ``(m,)``, in that order."""

    def first(self, count: int | None) -> Split:
        """The first ``count`` images, or all."""

    def to(self, device: torch.device) -> Split:
        """The same, giving its batches on another device."""

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """In order, ``size`` at a time: ``(B, channels, height, width)`` float32 in [0, 1], and labels ``(B,)``."""


@dataclass(frozen=True)
class MemorySplit:
    """Decoded images: ``images`` ``(n, channels, height, width)``, uint8, or float32 in [0, 1]; ``labels`` ``(n,)``."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Tensor | slice) -> tuple[Tensor, Tensor]:
        """The images at ``indices``, float32 in [0, 1], and their labels."""
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
        """Images of ``size × size`` (bilinear, antialiased); uint8 stays uint8."""
        out = self.images.new_empty(*self.images.shape[:2], size, size)
        for start in range(0, len(self), _RESIZED_AT_ONCE):
            chosen = slice(start, start + _RESIZED_AT_ONCE)
            small = as_pixels(self.images[chosen])
            pixels = F.interpolate(small, size=(size, size), mode="bilinear", antialias=True).clamp(0, 1)
            out[chosen] = pixels if out.is_floating_point() else (pixels * 255).round()
        return MemorySplit(out, self.labels)


def as_pixels(images: Tensor) -> Tensor:
    """Float32 in [0, 1] from uint8 in 0 … 255; float32 passes."""
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
        """``count`` images of noise."""
        return torch.rand(count, self.channels, self.image_size, self.image_size, device=device)

    def targets(self, count: int, device: torch.device | str) -> Tensor:
        """``count`` random classes."""
        return torch.randint(self.classes, (count,), device=device)
