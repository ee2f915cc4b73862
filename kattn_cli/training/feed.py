"""Batches for training: from memory, augmented whole on the device, or from files, augmented image by image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Protocol

from torch import Tensor

from kattn_cli.data import FileSplit, ImageData, MemorySplit, Split
from kattn_cli.data.images import as_pixels
from kattn_cli.data.workers import Transform
from kattn_cli.recipe_train import Train
from kattn_cli.training.augment import Augment, after_decoding, in_memory
from kattn_cli.training.plan import Plan, Shard
from kattn_cli.training.transforms import train_transform


class Feed(Protocol):
    """Gives each shard's images ``(B, channels, height, width)``, float32 in [0, 1], and labels ``(B,)``."""

    augment: Augment
    """What is still to be done to the images of a shard, on the device, after its seeds are set."""

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[tuple[Shard, Tensor, Tensor]]]:
        """The images and labels of each batch's shards, in order."""


class MemoryFeed:
    """Images that lie on the device."""

    def __init__(self, split: MemorySplit, augment: Augment) -> None:
        self.split, self.augment = split, augment

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[tuple[Shard, Tensor, Tensor]]]:
        """See :class:`Feed`."""
        for shards in batches:
            chosen = [shard.indices.to(self.split.labels.device) for shard in shards]
            yield [
                (shard, self.split.pixels(indices), self.split.labels[indices])
                for shard, indices in zip(shards, chosen, strict=True)
            ]


class FileFeed:
    """Images decoded, cropped and augmented one by one in worker processes, ahead of the training."""

    def __init__(self, split: FileSplit, plan: Plan, augment: Augment, transform: Transform) -> None:
        self.split, self.plan, self.augment, self.transform = split, plan, augment, transform

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[tuple[Shard, Tensor, Tensor]]]:
        """See :class:`Feed`."""
        planned = list(batches)
        decoded = self.split.stream([self._seeded(shard) for shard in chain.from_iterable(planned)], self.transform)
        for shards in planned:
            yield [(shard, as_pixels(images), labels) for shard, (images, labels) in zip(shards, decoded, strict=False)]

    def _seeded(self, shard: Shard) -> Sequence[tuple[int, int]]:
        return list(zip(shard.indices.tolist(), self.plan.image_seeds(shard), strict=True))


class SyntheticFeed:
    """The same batch again and again, as it is: what a training costs when data cost nothing."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels
        self.augment: Augment = _as_it_is

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[tuple[Shard, Tensor, Tensor]]]:
        """See :class:`Feed`; a shard has the first of the images, as many as it asks for."""
        for shards in batches:
            yield [(one, self.images[: len(one.indices)], self.labels[: len(one.indices)]) for one in shards]


def _as_it_is(images: Tensor) -> Tensor:
    return images


def build_feed(data: ImageData, split: Split, plan: Plan, settings: Train) -> Feed:
    """The feed of ``split``, ``data``'s training split on the device of training."""
    if isinstance(split, MemorySplit):
        return MemoryFeed(split, in_memory(settings, data.mean, data.std))
    if isinstance(split, FileSplit):
        transform = train_transform(settings, data.image_size, data.channels, data.mean)
        return FileFeed(split, plan, after_decoding(settings, data.mean, data.std), transform)
    raise TypeError(type(split).__name__)
