"""Splits of images with masks: whole images of any size to evaluate on, crops of one size to train on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kattn_cli.data.images import as_pixels
from kattn_cli.data.reading.encoded import Corruption
from kattn_cli.data.reading.workers import Batch, decoded_batches
from kattn_cli.data.segmentation.pairs import Pairs, PairWork, RandomView, View, WholeView
from kattn_cli.errors import DataError

Wholes = tuple[list[Tensor], list[Tensor]]
"""Images ``(channels, height, width)`` float32 in [0, 1], and masks ``(h, w)`` int64, of sizes of their own."""


@dataclass(frozen=True)
class MaskSplit:
    """Images and masks on disk, decoded when they are asked for.

    ``rows`` ``(n,)``: which of ``pairs`` are in the split. ``workers``: processes that decode; 0 decodes here.
    ``corruption``: the count of unreadable ones that all splits of a data set share. One that cannot be read is left
    out of its batch, which is that much smaller.
    """

    pairs: Pairs
    rows: Tensor
    image_size: int
    workers: int
    corruption: Corruption
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - a device is immutable

    def __len__(self) -> int:
        return len(self.rows)

    def subset(self, indices: Tensor) -> MaskSplit:
        """Return the images at ``indices`` ``(m,)``, in that order."""
        return replace(self, rows=self.rows[indices.cpu()])

    def first(self, count: int | None) -> MaskSplit:
        """Return the first ``count`` images, or all."""
        return replace(self, rows=self.rows[:count])

    def to(self, device: torch.device) -> MaskSplit:
        """Return the same split, giving its batches on another device."""
        return replace(self, device=torch.device(device))

    def take(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return the centres of images at ``indices``: ``(B, channels, S, S)`` float32; masks ``(B, S, S)`` int64.

        Raises:
            DataError: if none of them can be read, or more than are tolerated cannot.
        """
        images, masks = next(self.subset(indices).stream([[(index, None) for index in range(len(indices))]]))
        return as_pixels(images), masks

    def batches(self, size: int) -> Iterator[Wholes]:
        """Yield whole images with their masks, in order, ``size`` at a time.

        Raises:
            DataError: if more images cannot be read than ``corruption`` puts up with.
        """
        images: list[Tensor] = []
        masks: list[Tensor] = []
        plan: list[Batch] = [[(index, None)] for index in range(len(self))]
        for number, (image, mask) in enumerate(self._decode(plan, WholeView(self.image_size)), 1):
            images += as_pixels(image).unbind()
            masks += mask.long().unbind()
            if images and (number % size == 0 or number == len(plan)):
                yield images, masks
                images, masks = [], []

    def stream(self, plan: Sequence[Batch], view: View | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield crops for each batch of ``plan``, made ahead: uint8 ``(B, channels, S, S)``; masks ``(B, S, S)`` int64.

        Args:
            plan: batches, each of images by their index in the split, and the seed of each.
            view: of image and mask, by default their centre.

        Raises:
            DataError: if more images cannot be read than ``corruption`` puts up with, or all of one batch.
        """
        for number, (images, masks) in enumerate(self._decode(plan, view or RandomView(self.image_size))):
            if not len(images):
                raise DataError(
                    f"none of the {len(plan[number])} images of a batch can be read: {self.corruption.summary()}"
                )
            yield images, masks.long()

    def _decode(self, plan: Sequence[Batch], view: View) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield one, perhaps empty, batch for each of ``plan``, on the split's device."""
        work = PairWork(self.pairs, self.rows, view)
        for images, masks, problems in decoded_batches(work, plan, self.workers, pin=self.device.type == "cuda"):
            for name, reason in problems:
                self.corruption.note(name, reason)
            yield images.to(self.device, non_blocking=True), masks.to(self.device, non_blocking=True)
