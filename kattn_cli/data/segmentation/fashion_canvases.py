"""Fashion-MNIST's items on canvases, with a class for every pixel: a small stand-in for ADE20K, in its layout.

Made once, from the seed, and kept under ``$KATTN_DATA/fashion_canvases`` or ``~/.cache/kattn/fashion_canvases``; items
of Fashion-MNIST's training images on the canvases to train on, of its test images on those to test.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from filelock import FileLock
from PIL import Image
from pydantic import Field

from kattn_cli.data.dataset import NOT_GENERATED, Facts, FileCheck
from kattn_cli.data.images import MemorySplit, SplitName
from kattn_cli.data.roots import default_root
from kattn_cli.data.segmentation.ade20k import Ade20k
from kattn_cli.data.segmentation.canvas import Items, canvas
from kattn_cli.data.segmentation.layout import FOLDERS, checks
from kattn_cli.data.segmentation.split import MaskSplit
from kattn_cli.data.sets.fashion_mnist import FashionMnist
from kattn_cli.data.sets.mnist import SIZE
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection, SegmentationSection
from kattn_cli.runs.whole_file import faults_as

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
        """In a folder beside, which takes the name when all is in it."""
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
