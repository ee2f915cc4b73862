"""Logits of a whole image of any size, from a window that slides over it.

As Segmenter's program does it (Strudel et al. 2021, §4.2): where windows overlap their logits are averaged, not what
softmax makes of them, and the mean is then resized to the size of the annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

WINDOWS_AT_ONCE = 64


def starts(length: int, window: int, stride: int) -> list[int]:
    """Where windows begin along a side: every ``stride`` pixels, the last one flush with the end.

    Raises:
        ValueError: if the side is shorter than the window.
    """
    if length < window:
        raise ValueError(f"a side of {length} pixels is shorter than the window of {window}")
    last = length - window
    return [*range(0, last, stride), last]


def slid(
    predict: Callable[[Tensor], Tensor], images: Sequence[Tensor], window: int, stride: int, at_once: int
) -> list[Tensor]:
    """Logits ``(classes, H, W)`` of each image ``(channels, H, W)``; the images may differ in size.

    Args:
        predict: ``(B, channels, window, window)`` to ``(B, classes, window, window)``.
        at_once: windows that are predicted together, of all images.
    """
    places = [_places(image, window, stride) for image in images]
    crops = [
        image[:, top : top + window, left : left + window]
        for image, grid in zip(images, places, strict=True)
        for top, left in grid
    ]
    logits = torch.cat([predict(torch.stack(crops[n : n + at_once])).float() for n in range(0, len(crops), at_once)])
    parts = logits.split([len(grid) for grid in places])
    return [_merged(part, grid, image) for part, grid, image in zip(parts, places, images, strict=True)]


def resized_logits(logits: Tensor, size: Sequence[int]) -> Tensor:
    """``(classes, H, W)`` at another height and width, bilinearly."""
    if logits.shape[-2:] == tuple(size):
        return logits
    return F.interpolate(logits[None], size=tuple(size), mode="bilinear", align_corners=False)[0]


def _places(image: Tensor, window: int, stride: int) -> list[tuple[int, int]]:
    height, width = image.shape[-2:]
    return [(top, left) for top in starts(height, window, stride) for left in starts(width, window, stride)]


def _merged(logits: Tensor, places: Sequence[tuple[int, int]], image: Tensor) -> Tensor:
    """The mean over the windows of each pixel."""
    if len(places) == 1:
        return logits[0]
    window = logits.shape[-1]
    total = logits.new_zeros(logits.shape[1], *image.shape[-2:])
    count = logits.new_zeros(image.shape[-2:])
    for part, (top, left) in zip(logits, places, strict=True):
        total[:, top : top + window, left : left + window] += part
        count[top : top + window, left : left + window] += 1
    return total / count
