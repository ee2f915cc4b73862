"""Which images each step sees: a function of the seed and the epoch, whatever the number of processes.

A batch is what one step of the optimizer sees. It is dealt into shards, one for each process and part of an
accumulated step; each shard has random numbers of its own. So two processes see what one process with two
parts sees, augmentation and dropout included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from kattn_cli.recipe.train import Train
from kattn_cli.training.seed import Stream, derived_seed, generator


@dataclass(frozen=True)
class Shard:
    """``indices`` of the images that one process sees at once; ``share`` of their batch; ``draw`` seeds its numbers."""

    indices: Tensor
    share: float
    draw: int


@dataclass(frozen=True)
class Plan:
    """The steps of a training on ``images`` images, of which process ``rank`` of ``processes`` takes its shards."""

    images: int
    settings: Train
    seed: int
    rank: int = 0
    processes: int = 1

    @property
    def shards(self) -> int:
        """Shards of each batch, over all processes."""
        return self.processes * self.settings.accumulate

    @property
    def steps_per_epoch(self) -> int:
        """Steps of the optimizer in an epoch; a last batch with fewer images than shards is left out."""
        whole, rest = divmod(self.images, self.settings.batch_size)
        # Every shard needs an image, or a process would have no gradient to exchange.
        return whole + (rest >= self.shards)

    @property
    def steps(self) -> int:
        """Steps in all."""
        return self.steps_per_epoch * self.settings.epochs

    def order(self, epoch: int) -> Tensor:
        """Return the images of an epoch in the order they are seen, ``(images,)``; with ``repeats`` some come again."""
        order = torch.randperm(self.images, generator=generator(self.seed, Stream.ORDER, epoch))
        # Copies stand side by side and the list is cut, so an epoch has as many steps as without (DeiT's repeats).
        return order.repeat_interleave(self.settings.repeats)[: self.images]

    def batches(self, epoch: int, first: int = 0) -> Iterator[list[Shard]]:
        """Yield this process's shards of each batch of ``epoch``, from its batch ``first``."""
        # The whole order is drawn even when resuming in mid-epoch, so that batches are those they would have been.
        order, size = self.order(epoch), self.settings.batch_size
        for position in range(first, self.steps_per_epoch):
            batch = order[position * size :][:size]
            step = epoch * self.steps_per_epoch + position
            yield [self._shard(batch, step, number) for number in self._own()]

    def _own(self) -> range:
        return range(self.rank * self.settings.accumulate, (self.rank + 1) * self.settings.accumulate)

    def _shard(self, batch: Tensor, step: int, number: int) -> Shard:
        # Dealt in turn, so that sizes differ by one at most; the share weighs them.
        indices = batch[number :: self.shards]
        return Shard(indices, len(indices) / len(batch), step * self.shards + number)

    def image_seeds(self, shard: Shard) -> list[int]:
        """Return a seed for each image of a shard, for what is drawn where it is decoded."""
        first = derived_seed(self.seed, Stream.IMAGE, shard.draw)
        return [(first + position) % 2**63 for position in range(len(shard.indices))]
