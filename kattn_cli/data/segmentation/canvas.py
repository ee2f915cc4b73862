"""Canvases: a few items of Fashion-MNIST, each of its own size, on a cloudy ground; every pixel knows whose it is.

A canvas is a function of the seed, its split and its number. The ground is cloudy grey with fine noise, as light as
the items are, so that brightness alone does not give a pixel away. Items do not lie on each other but for a tenth of
the smaller at most; what finds no such place in a few tries is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import binary_fill_holes

BACKGROUND = 0
ITEMS = (3, 6)
"""How many, the end excluded."""
SIDES = (0.4, 0.65)
"""Of an item's square picture, over the canvas's."""
BRIGHTNESS = (0.65, 1.0)
CLOUDS = 80.0
"""The lightest of the ground, in grey values."""
CLOUD_CELLS = 5
NOISE = 6.0
INK = 12
"""Grey value from which on a pixel belongs to an item; holes belong to it, too."""
OVERLAP = 0.1
TRIES = 20

Picture = NDArray[np.uint8]


@dataclass(frozen=True)
class Items:
    """Fashion-MNIST's pictures ``(n, 28, 28)`` and their classes ``(n,)``."""

    pictures: Picture
    labels: NDArray[np.integer]


def canvas(items: Items, size: int, dice: np.random.Generator) -> tuple[Picture, Picture]:
    """A canvas ``(size, size)`` in grey values, and its mask: 0 for the ground, 1 + the class for an item."""
    ground = _clouds(size, dice)
    mask = np.full((size, size), BACKGROUND, dtype=np.uint8)
    for _ in range(dice.integers(*ITEMS)):
        number = int(dice.integers(len(items.labels)))
        side = max(4, round(size * dice.uniform(*SIDES)))
        picture, shape = _item(items.pictures[number], side)
        shade = dice.uniform(*BRIGHTNESS)
        for _ in range(TRIES):
            top, left = dice.integers(0, size - side + 1, 2)
            place = np.s_[top : top + side, left : left + side]
            if (mask[place][shape] != BACKGROUND).sum() <= OVERLAP * shape.sum():
                ground[place][shape] = shade * picture[shape]
                mask[place][shape] = 1 + int(items.labels[number])
                break
    noisy = ground + NOISE * dice.standard_normal((size, size))
    return noisy.round().clip(0, 255).astype(np.uint8), mask


def _item(picture: Picture, side: int) -> tuple[Picture, NDArray[np.bool_]]:
    """The picture, ``side`` pixels wide and tall, and which of them are the item's."""
    whole = binary_fill_holes(picture >= INK).astype(np.uint8) * 255
    small, shape = (Image.fromarray(one).resize((side, side), Image.Resampling.BILINEAR) for one in (picture, whole))
    return np.asarray(small), np.asarray(shape) > 127


def _clouds(size: int, dice: np.random.Generator) -> NDArray[np.float32]:
    """Smooth shades of grey from a coarse grid of random ones."""
    coarse = dice.uniform(0, CLOUDS, (CLOUD_CELLS, CLOUD_CELLS)).astype(np.float32)
    return np.array(Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)).clip(0, 255)
