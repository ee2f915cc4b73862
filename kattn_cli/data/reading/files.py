"""Splits of images on disk, decoded by worker processes when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from kattn_cli.data.dataset import ImageDataSet
from kattn_cli.data.images import MemorySplit, Split, SplitName, as_pixels
from kattn_cli.data.reading.encoded import Corruption, Encoded, EvaluationView
from kattn_cli.data.reading.workers import Batch, Transform, Work, decoded_batches
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection

IN_MEMORY_BYTES = 2 * 1024**3
_DECODE_BATCH = 256


@dataclass(frozen=True)
class FileSplit:
    """Images decoded when asked for; see :class:`~kattn_cli.data.images.Split`.

    ``encoded``: where they are; ``rows`` ``(n,)``: which of them are in the split; ``targets`` ``(n,)``: their labels,
    int64, on the CPU. ``image_size`` and ``crop_pct``: see :class:`~kattn_cli.data.reading.encoded.EvaluationView`.
    ``channels``: 3 (RGB) or 1 (grey values). ``workers``: processes that decode; 0 decodes here.
    ``corruption``: the count that all splits of a data set share. ``only_size``: height and width that all images
    must have, where the data set is of one size.

    An image that cannot be read is left out of its batch, which is that much smaller.
    """

    encoded: Encoded
    rows: Tensor
    targets: Tensor
    image_size: int
    crop_pct: float
    channels: int
    workers: int
    corruption: Corruption
    only_size: int | None = None
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - a device is immutable

    @property
    def labels(self) -> Tensor:
        """``(n,)`` int64, on the split's device; those of images that cannot be read among them."""
        return self.targets.to(self.device)

    @property
    def corrupt(self) -> list[str]:
        """``name (reason)`` of each image that could not be read so far, of the whole data set."""
        return self.corruption.lines()

    def __len__(self) -> int:
        return len(self.targets)

    def subset(self, indices: Tensor) -> FileSplit:
        """See :class:`~kattn_cli.data.images.Split`."""
        chosen = indices.cpu()
        return replace(self, rows=self.rows[chosen], targets=self.targets[chosen])

    def first(self, count: int | None) -> FileSplit:
        """See :class:`~kattn_cli.data.images.Split`."""
        return replace(self, rows=self.rows[:count], targets=self.targets[:count])

    def to(self, device: torch.device) -> FileSplit:
        """See :class:`~kattn_cli.data.images.Split`."""
        return replace(self, device=torch.device(device))

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the evaluation view, in order; see :class:`~kattn_cli.data.images.Split`.

        Raises:
            DataError: if more images cannot be read than ``corruption`` puts up with.
        """
        for images, labels in self._decode(self._in_order(size), self._view()):
            if len(labels):
                yield as_pixels(images), labels

    def stream(
        self, plan: Sequence[Sequence[tuple[int, int]]], transform: Transform
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield a batch for each of ``plan``, decoded ahead: uint8 ``(B, channels, S, S)``, and labels ``(B,)``.

        Each entry of a batch is ``(index, seed)``. Before ``transform`` sees an image, the generators of Python, numpy
        and torch are seeded with its seed, so that a batch is the same whichever process makes it.

        Args:
            plan: batches, each of images by their index in the split.
            transform: from a PIL image to uint8 ``(channels, S, S)``; pickled to the workers on macOS and Windows.

        Raises:
            DataError: if more images cannot be read than ``corruption`` puts up with, or all of one batch.
        """
        for number, (images, labels) in enumerate(self._decode(plan, transform)):
            if not len(labels):
                raise DataError(
                    f"none of the {len(plan[number])} images of a batch can be read: {self.corruption.summary()}"
                )
            yield images, labels

    def decoded(self) -> MemorySplit:
        """Return the evaluation view of all images, uint8; those that cannot be read are left out.

        Raises:
            DataError: if more images cannot be read than ``corruption`` puts up with.
        """
        shape = (len(self), self.channels, self.image_size, self.image_size)
        images = torch.empty(shape, dtype=torch.uint8, device=self.device)
        labels = torch.empty(len(self), dtype=torch.int64, device=self.device)
        end = 0
        for pixels, targets in self._decode(self._in_order(_DECODE_BATCH), self._view()):
            start, end = end, end + len(targets)
            images[start:end], labels[start:end] = pixels, targets
        return MemorySplit(images[:end], labels[:end])

    def _view(self) -> EvaluationView:
        return EvaluationView(self.image_size, self.crop_pct)

    def _in_order(self, size: int) -> list[Batch]:
        return [[(index, None) for index in block.tolist()] for block in torch.arange(len(self)).split(size)]

    def _decode(self, plan: Sequence[Batch], transform: Transform) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield one, perhaps empty, batch for each of ``plan``, on the split's device."""
        work = Work(self.encoded, self.rows, self.targets, self.channels, self.only_size, transform)
        try:
            for images, labels, problems in decoded_batches(work, plan, self.workers, pin=self.device.type == "cuda"):
                for name, reason in problems:
                    self.corruption.note(name, reason)
                yield images.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)
        except RuntimeError as error:
            if not str(error).startswith("DataLoader worker"):
                raise
            raise DataError(
                f"a process that reads images has died; with fewer of them (data.workers = {self.workers}) there is "
                f"more memory for each: {' '.join(str(error).split())}"
            ) from error


class FileDataSet(ImageDataSet):
    """A data set of encoded images, decoded once where it is small.

    ``in_memory``: whether to keep it decoded in memory; None decides by its size (at most 2 GiB decoded).
    """

    name: ClassVar[str]
    any_channels = True

    def __init__(self, in_memory: bool | None) -> None:
        self.in_memory = in_memory
        self._corruption = Corruption(limit=0)

    @property
    def corrupt(self) -> list[str]:
        """``name (reason)`` of each image that could not be read since :meth:`load`."""
        return self._corruption.lines()

    def require(self) -> None:
        """Raise what :meth:`missing` reports.

        Raises:
            DataError: if it reports anything.
        """
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")

    def split_up(
        self,
        parts: Mapping[SplitName, tuple[Encoded, Tensor]],
        data: ImageSection,
        image_size: int,
        *,
        channels: int = 3,
        crop_pct: float | None = None,
        only_size: int | None = None,
    ) -> dict[SplitName, Split]:
        """Return the splits, decoded or to be decoded when asked for.

        Args:
            parts: the images of each split, and their labels ``(n,)``.
            data: its ``crop_pct``, ``workers`` and ``max_corrupt`` are heeded.
            image_size: height and width to give.
            channels: 3 or 1; ``data.channels`` goes before it.
            crop_pct: in place of that of ``data``.
            only_size: see :class:`FileSplit`.

        Raises:
            DataError: if more images cannot be read than ``data.max_corrupt``.
        """
        self._corruption = Corruption(data.max_corrupt)
        channels = data.channels or channels
        splits = {
            name: FileSplit(
                encoded=encoded,
                rows=torch.arange(len(labels)),
                targets=labels,
                image_size=image_size,
                crop_pct=crop_pct or data.crop_pct,
                channels=channels,
                workers=data.workers,
                corruption=self._corruption,
                only_size=only_size,
            )
            for name, (encoded, labels) in parts.items()
        }
        decoded_bytes = sum(len(split) for split in splits.values()) * channels * image_size**2
        in_memory = decoded_bytes <= IN_MEMORY_BYTES if self.in_memory is None else self.in_memory
        return {name: split.decoded() if in_memory else split for name, split in splits.items()}
