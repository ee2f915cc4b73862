"""How well a segmentation model fits the masks of whole images, by windows that slide over them.

As Segmenter's program does it (Strudel et al. 2021, §4.2): where windows overlap their logits are averaged, not what
softmax makes of them, and the mean is then resized to the size of the annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from kattn_cli.data.segmentation import IGNORED
from kattn_cli.data.segmentation.split import Wholes
from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel, auxiliary_loss
from kattn_cli.tasks.masks.overlaps import PARTS, overlaps, segmentation_measures

WINDOWS_AT_ONCE = 64
LOGITS_AT_ONCE = 2**26
"""Of windows that are predicted together."""


class BatchedMasks(Protocol):
    """What can be evaluated; a :class:`~kattn_cli.data.segmentation.split.MaskSplit`, for instance."""

    def batches(self, size: int) -> Iterator[Wholes]:
        """Images ``(channels, H, W)`` in [0, 1], and masks ``(h, w)`` of other sizes, perhaps."""


@dataclass(frozen=True)
class Segmented:
    """``sums`` ``(3, classes)``: see :func:`~kattn_cli.tasks.masks.overlaps.overlaps`; of all pixels together."""

    images: int
    loss: float
    auxiliary_loss: float
    sums: NDArray[np.float64]

    @property
    def measures(self) -> dict[str, float]:
        """Pixel accuracy, mean accuracy and mean IoU in %."""
        return segmentation_measures(self.sums)


def windows_at_once(classes: int, window: int) -> int:
    """Return how many windows to predict together, and how many images to read."""
    return max(1, min(WINDOWS_AT_ONCE, LOGITS_AT_ONCE // (classes * window * window)))


@torch.no_grad()
def evaluate_masks(
    model: AttentionModel,
    split: BatchedMasks,
    *,
    classes: int,
    window: int,
    stride: int,
    gather: Callable[[Tensor], Tensor] | None = None,
) -> Segmented:
    """Evaluate in ``eval`` mode; the model's mode is put back afterwards.

    The loss is the mean over all labelled pixels of the split, at the annotations' own sizes.

    Args:
        gather: joins ``(n, …)`` of several processes, each of which has a part of the images as its ``split``.

    Raises:
        DataError: if there is no image that can be read.
    """
    training = model.training
    model.eval()
    at_once = windows_at_once(classes, window)
    total = torch.zeros(3 + PARTS * classes, dtype=torch.float64, device=model.device)
    for images, masks in split.batches(at_once):
        logits = slid(model, images, window, stride, at_once)
        auxiliary = auxiliary_loss(model).double() * len(images)
        for scores, mask in zip(logits, masks, strict=True):
            total[3:] += _of_image(resized_logits(scores, mask.shape), mask, classes, total)
        total[0] += len(images)
        total[1] += auxiliary
    model.train(training)
    rows = gather(total[None]) if gather else total[None]
    images_seen, auxiliary_sum, loss, *sums = rows.sum(0).tolist()
    if not images_seen:
        raise DataError("there is nothing to evaluate that can be read, or there are more processes than images")
    parts = np.array(sums).reshape(PARTS, classes)
    labelled = float(parts[-1].sum())
    return Segmented(
        int(images_seen), loss / labelled if labelled else float("nan"), auxiliary_sum / images_seen, parts
    )


def _of_image(logits: Tensor, mask: Tensor, classes: int, total: Tensor) -> Tensor:
    """Return the overlaps of one image, flat; its loss is added to ``total``."""
    total[2] += F.cross_entropy(logits[None], mask[None], ignore_index=IGNORED, reduction="sum").double()
    return overlaps(logits.argmax(0), mask, classes).flatten()


def starts(length: int, window: int, stride: int) -> list[int]:
    """Return where windows begin along a side: every ``stride`` pixels, the last one flush with the end.

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
    """Return logits ``(classes, H, W)`` of each image ``(channels, H, W)``; the images may differ in size.

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
    """Return ``(classes, H, W)`` at another height and width, bilinearly."""
    if logits.shape[-2:] == tuple(size):
        return logits
    return F.interpolate(logits[None], size=tuple(size), mode="bilinear", align_corners=False)[0]


def _places(image: Tensor, window: int, stride: int) -> list[tuple[int, int]]:
    height, width = image.shape[-2:]
    return [(top, left) for top in starts(height, window, stride) for left in starts(width, window, stride)]


def _merged(logits: Tensor, places: Sequence[tuple[int, int]], image: Tensor) -> Tensor:
    """Return the mean over the windows of each pixel."""
    if len(places) == 1:
        return logits[0]
    window = logits.shape[-1]
    total = logits.new_zeros(logits.shape[1], *image.shape[-2:])
    count = logits.new_zeros(image.shape[-2:])
    for part, (top, left) in zip(logits, places, strict=True):
        total[:, top : top + window, left : left + window] += part
        count[top : top + window, left : left + window] += 1
    return total / count
