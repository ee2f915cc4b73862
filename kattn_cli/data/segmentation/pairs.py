"""Images with their annotations as they lie on disk, and the processes that decode them.

An annotation is a picture of labels, one a pixel: 0 for none, then the classes from 1 on, as ADE20K has them. A mask
is what it becomes: the classes from 0 on, and :data:`IGNORED` for no label.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms.functional import pil_to_tensor

from kattn_cli.data.reading.encoded import Paths, Unreadable, open_image
from kattn_cli.data.reading.workers import Batch, Decoded

IGNORED = 255
"""The label of a pixel that counts neither in the loss nor in any measure."""

MOST_CLASSES = 255
_LABEL_MODES = ("L", "P", "1")

View = Callable[[Image.Image, Image.Image, int | None], tuple[Image.Image, Image.Image]]
"""From an image and its mask (of the same size) to what is given of them, both may be random by the seed."""


@dataclass(frozen=True)
class Pairs:
    """Files of images, and of their annotations in the same order; ``channels`` 3 or 1, ``classes`` without 'none'."""

    images: Paths
    annotations: Paths
    channels: int
    classes: int

    def __len__(self) -> int:
        return len(self.images.paths)

    def read(self, row: int) -> tuple[Image.Image, Image.Image]:
        """The image, and its mask as a picture of labels, of the same size.

        Raises:
            Unreadable: if either cannot be read, they differ in size, or a label is beyond the classes.
        """
        image = open_image(self.images.source(row), self.channels)
        labels = _open_annotation(self.annotations.source(row))
        if labels.shape != image.size[::-1]:
            tall, wide = labels.shape
            raise Unreadable(f"{image.height} × {image.width} pixels, and its annotation {tall} × {wide}")
        if (highest := int(labels.max(initial=0))) > self.classes:
            raise Unreadable(f"its annotation has a label {highest}, and there are {self.classes} classes")
        return image, Image.fromarray(labels - np.uint8(1))  # no label, 0, becomes 255


def _open_annotation(path: str) -> np.ndarray:
    """``(height, width)`` uint8."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="PIL")
            with Image.open(path) as annotation:
                if annotation.mode not in _LABEL_MODES:
                    raise Unreadable(f"its annotation is a picture of mode {annotation.mode}, not of a label a pixel")
                return np.asarray(annotation, dtype=np.uint8)
    except Unreadable:
        raise
    except FileNotFoundError:
        raise Unreadable("has no annotation") from None
    except Exception as error:  # PIL's decoders raise nearly anything on broken input
        raise Unreadable(f"its annotation cannot be read: {' '.join(str(error).split())}") from error


@dataclass(frozen=True)
class PairWork(Dataset[Decoded]):
    """What a worker does: one whole batch at a time, of images that ``view`` makes of one size.

    It gives uint8 ``(B, channels, H, W)`` and masks, uint8 ``(B, h, w)``, of those that can be read.
    """

    pairs: Pairs
    rows: Tensor
    view: View

    def __getitem__(self, batch: Batch) -> Decoded:
        images, masks, problems = [], [], []
        for index, seed in batch:
            row = int(self.rows[index])
            try:
                image, mask = self.view(*self.pairs.read(row), seed)
            except Unreadable as error:
                problems.append((self.pairs.images.name(row), str(error)))
                continue
            images.append(pil_to_tensor(image))
            masks.append(pil_to_tensor(mask)[0])
        return _stacked(images), _stacked(masks), problems


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(tensors)) if tensors else torch.empty(0, dtype=torch.uint8)
