"""ADE20K: scenes with a class for every pixel (Zhou et al. 2017, "Scene Parsing through ADE20K Dataset").

As published for its benchmark, ``ADEChallengeData2016``: 20,210 images to train on, 2,000 that are reported on, 150
classes. Any folder of that layout is read as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import torch

from kattn_cli.data.dataset import Facts, FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.encoded import Corruption
from kattn_cli.data.segmentation.data import SegmentationDataSet
from kattn_cli.data.segmentation.layout import FOLDERS, checks, class_list, missing_folder, pairs_of
from kattn_cli.data.segmentation.split import MaskSplit
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import SegmentationSection

CLASSES = 150


class Ade20k(SegmentationDataSet):
    """Images in ``images/``, annotations in ``annotations/``, the names of the classes in ``objectInfo150.txt``.

    Args:
        root: the folder of these three; ``ADEChallengeData2016`` once the published file is unpacked. Another set's
            classes are those of its ``objectInfo….txt``; without that file they are 150.
    """

    name: ClassVar[str] = "ade20k"
    description = "22,210 scenes, a class for every pixel"
    how_to_get = (
        "unpack ADEChallengeData2016.zip of http://sceneparsing.csail.mit.edu and give its folder as data.root, with "
        "images/training, images/validation, annotations/training and annotations/validation"
    )
    channels: ClassVar[int] = 3

    def __init__(self, *, root: str) -> None:
        self.root = Path(root).expanduser()
        self._corruption = Corruption(limit=0)

    def facts(self) -> Facts:
        """See :class:`SegmentationDataSet`; the images vary in size."""
        return Facts(classes=len(self.class_names()), channels=self.channels, image_size=None)

    def class_names(self) -> tuple[str, ...]:
        """See :class:`SegmentationDataSet`; numbers where no file names them."""
        return class_list(self.root) or tuple(str(label) for label in range(1, CLASSES + 1))

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        folder = missing_folder(self.root)
        return f"data.root: {folder} is not a folder; {self.how_to_get}" if folder else ""

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`: one line a split."""
        return checks(self.root)

    def fetch(self) -> None:
        """See :class:`~kattn_cli.data.dataset.DataSet`: its terms must be agreed to, so nothing is fetched."""
        raise DataError(f"{self.name}: is not fetched; {self.how_to_get}")

    def load(self, data: SegmentationSection, image_size: int) -> dict[SplitName, MaskSplit]:
        """See :class:`SegmentationDataSet`; nothing is decoded yet."""
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing.removeprefix('data.')}")
        self._corruption = Corruption(data.max_corrupt)
        classes = len(self.class_names())
        pairs = {split: pairs_of(self.root, split, self.channels, classes) for split in FOLDERS}
        return {
            split: MaskSplit(found, torch.arange(len(found)), image_size, data.workers, self._corruption)
            for split, found in pairs.items()
        }

    @property
    def corrupt(self) -> list[str]:
        """See :class:`SegmentationDataSet`."""
        return self._corruption.lines()
