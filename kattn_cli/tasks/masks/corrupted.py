"""Whole images under corruption, as they are seen, with the masks of the clean ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from kattn_cli.data.corruptions import CORRUPTIONS, corrupt
from kattn_cli.data.segmentation import MaskSplit
from kattn_cli.data.segmentation.split import Wholes
from kattn_cli.training.corrupted import Making
from kattn_cli.training.seed import Stream, generator

CORRUPTED_AT_ONCE = 64
"""Images for which numbers are drawn at once; the same for every run and machine, as what is drawn depends on it."""


@dataclass(frozen=True)
class CorruptedMasks:
    """``split`` under the corruption ``name`` of ``severity``; images are corrupted once they have the size seen.

    What is drawn is a function of the seed, the type, the severity, and the images' place in the split.
    """

    split: MaskSplit
    name: str
    severity: int
    making: Making

    def batches(self, size: int) -> Iterator[Wholes]:
        """See :class:`~kattn_cli.data.segmentation.split.MaskSplit`."""
        place = CORRUPTIONS[self.name].seed_position(self.severity)
        for number, (images, masks) in enumerate(self.split.batches(CORRUPTED_AT_ONCE)):
            draws = generator(self.making.seed, Stream.CORRUPTION, (place << 32) + number)
            changed = self._corrupted(images, draws)
            for start in range(0, len(images), size):
                yield changed[start : start + size], masks[start : start + size]

    def _corrupted(self, images: list[Tensor], draws: torch.Generator) -> list[Tensor]:
        """Images of one size together."""
        making, changed = self.making, list(images)
        by_size: dict[torch.Size, list[int]] = {}
        for index, image in enumerate(images):
            by_size.setdefault(image.shape, []).append(index)
        for indices in by_size.values():
            batch = torch.stack([images[index] for index in indices])
            done = corrupt(batch, self.name, self.severity, draws, making.parameters, making.textures)
            for index, image in zip(indices, done, strict=True):
                changed[index] = image
        return changed
