"""Corrupted images, made from clean ones batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from kattn_cli.data import Split
from kattn_cli.data.corruptions import CORRUPTIONS, ParameterSet, corrupt
from kattn_cli.training.seed import Stream, generator

CORRUPTED_BATCH = 128
"""Images at once. What is drawn depends on it, so it is the same for every run and machine."""


@dataclass(frozen=True)
class Making:
    """How images are corrupted: by which parameters, from which seed, and with which photographs of frost, if any."""

    parameters: ParameterSet
    seed: int = 0
    textures: Sequence[Tensor] | None = None


@dataclass(frozen=True)
class CorruptedSplit:
    """``split`` under the corruption ``name`` of ``severity``.

    What is drawn is a function of the seed, the type, the severity and the batch's number.
    """

    split: Split
    name: str
    severity: int
    making: Making

    def batches(self, size: int = CORRUPTED_BATCH) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield corrupted images and their labels; see :class:`~kattn_cli.data.images.Split`."""
        place = CORRUPTIONS[self.name].seed_position(self.severity)
        making = self.making
        for number, (images, labels) in enumerate(self.split.batches(size)):
            # The corruption's place in the upper bits, so that no two corruptions share a batch's seed.
            draws = generator(making.seed, Stream.CORRUPTION, (place << 32) + number)
            yield corrupt(images, self.name, self.severity, draws, making.parameters, making.textures), labels
