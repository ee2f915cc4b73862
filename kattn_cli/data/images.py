"""What every image data set is to the rest of kattn: splits of tensors with pixels in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

SplitName = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class Split:
    """``images`` ``(n, channels, height, width)`` float32 in [0, 1], ``labels`` ``(n,)`` int64."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, count: int | None) -> Split:
        """The first ``count`` images, or all."""
        return Split(self.images[:count], self.labels[:count])

    def to(self, device: object) -> Split:
        """The same on another device."""
        return Split(self.images.to(device), self.labels.to(device))  # type: ignore[call-overload]

    def resized(self, size: int) -> Split:
        """Images of ``size × size`` (bilinear, antialiased)."""
        images = F.interpolate(self.images, size=(size, size), mode="bilinear", antialias=True)
        return Split(images.clamp(0, 1), self.labels)


@dataclass(frozen=True)
class Source:
    """A data set that can be loaded: what is known of it beforehand, and how to get its splits."""

    description: str
    classes: int
    channels: int
    image_size: int
    load: Callable[[], dict[SplitName, Split]]


@dataclass(frozen=True)
class ImageData:
    """A loaded data set. ``mean`` and ``std`` (one value a channel) are those of the training split."""

    name: str
    classes: int
    channels: int
    image_size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    splits: dict[SplitName, Split]
