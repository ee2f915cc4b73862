"""Feeds, which give the batches of a training: from memory, from files image by image, or as windows of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import torch

from kattn_cli.data.images import as_pixels
from kattn_cli.data.reading.files import FileSplit
from kattn_cli.data.reading.workers import Transform
from kattn_cli.data.segmentation.pairs import RandomView
from kattn_cli.data.segmentation.split import MaskSplit
from kattn_cli.data.text import TokenSplit
from kattn_cli.training.augment.batches import Augment
from kattn_cli.training.plan import Plan, Shard
from kattn_cli.training.seed import Stream, derived_seed

Dealt = tuple[Shard, Any, Any]
"""A shard, the model's inputs, and the targets.

Images ``(B, channels, height, width)``, float32 in [0, 1], or padded sequences, and labels ``(B,)``; of text, tokens
and those that follow, ``(B, N)`` each; of images with masks, labels ``(B, height, width)``; of trajectories, windows
and the actions in them.
"""


class Feed(Protocol):
    """What gives each shard's inputs and targets."""

    def augment(self, inputs: Any) -> Any:
        """Return the inputs of a shard after what is still to be done on the device, once its seeds are set."""

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[Dealt]]:
        """Yield the inputs and targets of each batch's shards, in order."""


class MemoryFeed:
    """Images, sequences or trajectories that lie on the device."""

    def __init__(self, split: Any, device: torch.device, augment: Augment | None = None) -> None:
        self.split, self.device = split, device
        self.augment: Any = augment or as_it_is

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[Dealt]]:
        """Yield shards taken from memory; see :class:`Feed`."""
        for shards in batches:
            yield [(shard, *self.split.take(shard.indices.to(self.device))) for shard in shards]


class TextFeed:
    """Windows of a text; each epoch they begin elsewhere, so that no token is always a window's first."""

    def __init__(self, split: TokenSplit, plan: Plan) -> None:
        self.split, self.plan = split, plan
        self.augment: Any = as_it_is

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[Dealt]]:
        """Yield windows of the text; see :class:`Feed`."""
        for shards in batches:
            yield [(shard, *self.split.take(shard.indices, self._shift(shard))) for shard in shards]

    def _shift(self, shard: Shard) -> int:
        """Return by how many tokens the windows of a shard's epoch are moved; none in the first."""
        # A draw's number is step · shards + place, so the epoch follows from it alone, on resuming too.
        epoch = shard.draw // (self.plan.steps_per_epoch * self.plan.shards)
        return derived_seed(self.plan.seed, Stream.ORDER, epoch) % self.split.context if epoch else 0


class FileFeed:
    """Images, with masks or without, decoded, cropped and augmented one by one in worker processes, ahead of use."""

    def __init__(
        self, split: FileSplit | MaskSplit, plan: Plan, augment: Augment, transform: Transform | RandomView
    ) -> None:
        self.split: Any = split
        self.plan, self.transform = plan, transform
        self.augment: Any = augment

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[Dealt]]:
        """Yield decoded images and their labels; see :class:`Feed`."""
        # The whole plan at once, so that the workers can read ahead beyond the batch in hand.
        planned = list(batches)
        decoded = self.split.stream([self._seeded(shard) for shard in chain.from_iterable(planned)], self.transform)
        for shards in planned:
            yield [(shard, as_pixels(images), labels) for shard, (images, labels) in zip(shards, decoded, strict=False)]

    def _seeded(self, shard: Shard) -> Sequence[tuple[int, int]]:
        return list(zip(shard.indices.tolist(), self.plan.image_seeds(shard), strict=True))


@dataclass(frozen=True)
class SyntheticSplit:
    """One batch of ``count`` samples on the device of training."""

    inputs: Any
    targets: Any
    count: int

    def __len__(self) -> int:
        return self.count

    def to(self, device: torch.device) -> SyntheticSplit:
        """Return itself, which already lies on the device."""
        return self

    def first(self, count: int) -> tuple[Any, Any]:
        """Return the first ``count`` inputs and targets; those that are not tensors can only be had whole."""
        return (self.inputs, self.targets) if count == self.count else (self.inputs[:count], self.targets[:count])


class SyntheticFeed:
    """The same batch again and again, as it is: what a training costs when data cost nothing."""

    def __init__(self, split: SyntheticSplit) -> None:
        self.split = split
        self.augment: Any = as_it_is

    def shards(self, batches: Iterator[list[Shard]]) -> Iterator[list[Dealt]]:
        """Yield as many of the samples as each shard asks for, from the first on; see :class:`Feed`."""
        for shards in batches:
            yield [(one, *self.split.first(len(one.indices))) for one in shards]


def as_it_is(inputs: Any) -> Any:
    return inputs
