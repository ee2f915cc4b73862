"""Images with their annotations on disk, and the work of the processes that decode them.

An annotation is a picture of labels, one a pixel: 0 for none, then the classes from 1 on, as ADE20K has them. A mask
is what it becomes: the classes from 0 on, and :data:`IGNORED` for no label.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageOps
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
        """Return the image, and its mask as a picture of labels, of the same size.

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
    """Return the annotation, ``(height, width)`` uint8."""
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
    """The work of a process: one whole batch at a time, of images that ``view`` makes of one size.

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


BILINEAR, NEAREST = Image.Resampling.BILINEAR, Image.Resampling.NEAREST
SCALES = (0.5, 2.0)
"""Of the image's shorter side over ``image_size``: Segmenter's (Strudel et al. 2021, §4.2)."""


@dataclass(frozen=True)
class RandomView:
    """Image and mask scaled, cropped and flipped together, ``image_size × image_size`` both.

    Segmenter's augmentation: the shorter side becomes ``image_size`` times a factor that is uniform in
    :data:`SCALES`, a place for the crop is drawn, and left and right are exchanged with probability ``flip`` (theirs
    is 0.5). Where the image is smaller than the crop, black comes in that does not count. Left out of theirs: the
    photometric distortion, and crops drawn again where one class has three quarters of their pixels.

    Without a seed nothing is random: the crop is the centre of the image whose shorter side is ``image_size``.
    """

    image_size: int
    flip: float = 0.0

    def __call__(self, image: Image.Image, mask: Image.Image, seed: int | None) -> tuple[Image.Image, Image.Image]:
        dice = None if seed is None else np.random.default_rng(seed)
        factor = dice.uniform(*SCALES) if dice else 1.0
        size = scaled_size(image.size, max(1, round(self.image_size * factor)))
        image, mask = _resized(image, size, BILINEAR), _resized(mask, size, NEAREST)
        room = [max(0, one - self.image_size) for one in size]
        left, top = (int(dice.integers(one + 1)) for one in room) if dice else (one // 2 for one in room)
        box = (left, top, left + self.image_size, top + self.image_size)
        image, mask = _cropped(image, box, 0), _cropped(mask, box, IGNORED)
        if dice and dice.random() < self.flip:
            image, mask = ImageOps.mirror(image), ImageOps.mirror(mask)
        return image, mask


@dataclass(frozen=True)
class WholeView:
    """The whole image, its shorter side resized to ``image_size`` (bilinear), and the mask at its own size."""

    image_size: int

    def __call__(self, image: Image.Image, mask: Image.Image, seed: int | None) -> tuple[Image.Image, Image.Image]:
        return _resized(image, scaled_size(image.size, self.image_size), BILINEAR), mask


def scaled_size(size: tuple[int, int], shorter: int) -> tuple[int, int]:
    """Return width and height with this shorter side and, rounded to pixels, the same ratio."""
    width, height = size
    if width <= height:
        return shorter, max(shorter, round(height * shorter / width))
    return max(shorter, round(width * shorter / height)), shorter


def _resized(picture: Image.Image, size: tuple[int, int], how: Image.Resampling) -> Image.Image:
    return picture if picture.size == size else picture.resize(size, how)


def _cropped(picture: Image.Image, box: tuple[int, int, int, int], fill: int) -> Image.Image:
    """Return the box, which may reach beyond the picture to the right and below."""
    left, top, right, bottom = box
    inside = picture.crop((left, top, min(right, picture.width), min(bottom, picture.height)))
    if inside.size == (right - left, bottom - top):
        return inside
    background = (fill,) * 3 if picture.mode == "RGB" else fill
    framed = Image.new(picture.mode, (right - left, bottom - top), background)
    framed.paste(inside, (0, 0))
    return framed
