"""Fashion-MNIST's items on canvases, with a class for every pixel: a small stand-in for ADE20K, in its layout.

Made once, from the seed, and kept under ``$KATTN_DATA/fashion_canvases`` or ``~/.cache/kattn/fashion_canvases``; items
of Fashion-MNIST's training images on the canvases to train on, of its test images on those to test.

A canvas holds a few items, each of its own size, on a cloudy ground, and is a function of the seed, its split and its
number. The ground is cloudy grey with fine noise, as light as the items are, so that brightness alone does not give a
pixel away. Items do not lie on each other but for a tenth of the smaller at most; what finds no such place in a few
tries is left out.
"""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field
from scipy.ndimage import binary_fill_holes

from kattn_cli.data.dataset import NOT_GENERATED, Facts, FileCheck
from kattn_cli.data.images import MemorySplit, SplitName
from kattn_cli.data.reading.storage import default_root
from kattn_cli.data.segmentation.layout import FOLDERS, checks
from kattn_cli.data.segmentation.split import MaskSplit
from kattn_cli.data.sets.ade20k import Ade20k
from kattn_cli.data.sets.fashion_mnist import FashionMnist
from kattn_cli.data.sets.mnist import SIZE
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection, SegmentationSection
from kattn_cli.runs.whole_file import faults_as

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
    """Return a canvas ``(size, size)`` in grey values, and its mask: 0 for the ground, 1 + the class for an item."""
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
    """Return the picture, ``side`` pixels wide and tall, and which of them are the item's."""
    whole = binary_fill_holes(picture >= INK).astype(np.uint8) * 255
    small, shape = (Image.fromarray(one).resize((side, side), Image.Resampling.BILINEAR) for one in (picture, whole))
    return np.asarray(small), np.asarray(shape) > 127


def _clouds(size: int, dice: np.random.Generator) -> NDArray[np.float32]:
    """Return smooth shades of grey from a coarse grid of random ones."""
    coarse = dice.uniform(0, CLOUDS, (CLOUD_CELLS, CLOUD_CELLS)).astype(np.float32)
    return np.array(Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)).clip(0, 255)


VERSION = 1
"""Of the rules by which canvases are made; another one, other files."""

CLASS_NAMES = (
    "background",
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
"""The ground, then Fashion-MNIST's in their order."""

Count = Annotated[int, Field(ge=2, le=1_000_000)]


class FashionCanvases(Ade20k):
    """Canvases of up to five items, and the ground, in grey.

    Args:
        root: Fashion-MNIST's folder, as :class:`~kattn_cli.data.sets.fashion_mnist.FashionMnist` has it.
        size: height and width.
        train: how many canvases to train on.
        test: how many to report on.
        seed: another one, other canvases.
    """

    name: ClassVar[str] = "fashion_canvases"
    description = "Fashion-MNIST's items on canvases, a class for every pixel, generated"
    how_to_get = f"it is generated from Fashion-MNIST: {FashionMnist.how_to_get}"
    channels: ClassVar[int] = 1

    def __init__(
        self,
        *,
        root: str | None = None,
        size: Annotated[int, Field(ge=16, le=1024)] = 64,
        train: Count = 2000,
        test: Count = 500,
        seed: Annotated[int, Field(ge=0)] = 0,
    ) -> None:
        name = f"v{VERSION}-{size}-train{train}-test{test}-s{seed}"
        super().__init__(root=str(default_root(self.name) / name))
        self._fashion = FashionMnist(root=root)
        self.size, self.seed = size, seed
        self.counts: dict[SplitName, int] = {"train": train, "test": test}

    def facts(self) -> Facts:
        """See :class:`~kattn_cli.data.segmentation.data.SegmentationDataSet`."""
        return Facts(classes=len(CLASS_NAMES), channels=self.channels, image_size=self.size)

    def class_names(self) -> tuple[str, ...]:
        """See :class:`~kattn_cli.data.segmentation.data.SegmentationDataSet`."""
        return CLASS_NAMES

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`; once they are made, Fashion-MNIST is not needed."""
        return "" if self.root.is_dir() else self._fashion.missing()

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return checks(self.root) if self.root.is_dir() else [FileCheck(self.root, NOT_GENERATED)]

    def fetch(self) -> None:
        """Make them where they are not made yet.

        Raises:
            DataError: if Fashion-MNIST is not there, or they cannot be written.
        """
        if self.root.is_dir():
            return
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        with faults_as(DataError, self.root):
            self.root.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.root.with_name(f".{self.root.name}.lock")):
                if not self.root.is_dir():
                    self._write()

    def load(self, data: SegmentationSection, image_size: int) -> dict[SplitName, MaskSplit]:
        """See :class:`~kattn_cli.data.segmentation.data.SegmentationDataSet`; generated first where that is not done.

        Raises:
            DataError: also if Fashion-MNIST is not there to make them from.
        """
        self.fetch()
        return super().load(data, image_size)

    def _write(self) -> None:
        """Write into a folder beside, which takes the name when all is in it."""
        new = self.root.with_name(f".{self.root.name}.{socket.gethostname()}.{os.getpid()}")
        shutil.rmtree(new, ignore_errors=True)
        try:
            found = self._fashion.load(ImageSection(name=FashionMnist.name), SIZE)
            for place, (split, folder) in enumerate(FOLDERS.items()):
                images = found[split]
                assert isinstance(images, MemorySplit)
                items = Items(images.images[:, 0].numpy(), images.labels.numpy())
                self._write_split(new, folder, items, place, self.counts[split])
            lines = [f"{number}\t{name}" for number, name in enumerate(CLASS_NAMES, 1)]
            (new / "objectInfo11.txt").write_text("\n".join(["Idx\tName", *lines]) + "\n", encoding="utf-8")
            os.replace(new, self.root)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _write_split(self, root: Path, folder: str, items: Items, place: int, count: int) -> None:
        images, annotations = root / "images" / folder, root / "annotations" / folder
        images.mkdir(parents=True)
        annotations.mkdir(parents=True)
        for number in range(count):
            picture, mask = canvas(items, self.size, np.random.default_rng([self.seed, place, number]))
            Image.fromarray(picture).save(images / f"{number:06d}.png")
            Image.fromarray(mask + np.uint8(1)).save(annotations / f"{number:06d}.png")
