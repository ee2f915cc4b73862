"""What is seen of an image and its mask: a random part of it to train on, and the whole of it to be judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps

from kattn_cli.data.segmentation.pairs import IGNORED

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
    """Width and height with this shorter side and, rounded to pixels, the same ratio."""
    width, height = size
    if width <= height:
        return shorter, max(shorter, round(height * shorter / width))
    return max(shorter, round(width * shorter / height)), shorter


def _resized(picture: Image.Image, size: tuple[int, int], how: Image.Resampling) -> Image.Image:
    return picture if picture.size == size else picture.resize(size, how)


def _cropped(picture: Image.Image, box: tuple[int, int, int, int], fill: int) -> Image.Image:
    """The box, which may reach beyond the picture to the right and below."""
    left, top, right, bottom = box
    inside = picture.crop((left, top, min(right, picture.width), min(bottom, picture.height)))
    if inside.size == (right - left, bottom - top):
        return inside
    background = (fill,) * 3 if picture.mode == "RGB" else fill
    framed = Image.new(picture.mode, (right - left, bottom - top), background)
    framed.paste(inside, (0, 0))
    return framed
