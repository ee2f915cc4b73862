"""Loaded data of images with masks, and the interface of their data sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from kattn_cli.data.dataset import DataSet, Facts
from kattn_cli.data.images import SplitName
from kattn_cli.data.segmentation.split import MaskSplit
from kattn_cli.recipe.data import SegmentationSection


@dataclass(frozen=True)
class SegmentationData:
    """A loaded data set; every pixel has one of ``classes``, or none.

    ``image_size``: of crops and windows. ``stride``: from one window to the next. ``mean`` and ``std``: of each
    channel. ``chosen_on``: the split that the best epoch is chosen by. ``unreadable()`` names the images found so far
    that could not be read.
    """

    unit: ClassVar[str] = "images"
    reads: ClassVar[str] = "images with masks"
    name: str
    classes: int
    class_names: tuple[str, ...]
    channels: int
    image_size: int
    stride: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    splits: dict[SplitName, MaskSplit]
    chosen_on: SplitName = "validation"
    unreadable: Callable[[], list[str]] = list

    def sample(self, count: int, device: torch.device | str) -> Tensor:
        """Return ``count`` black images, of the window's size."""
        return torch.zeros(count, self.channels, self.image_size, self.image_size, device=device)

    def targets(self, count: int, device: torch.device | str) -> Tensor:
        """Return ``count`` masks of the first class."""
        return torch.zeros(count, self.image_size, self.image_size, dtype=torch.int64, device=device)


class SegmentationDataSet(DataSet):
    """A data set of images, each with a class for every pixel."""

    reads = "images with masks"
    section = SegmentationSection

    @abstractmethod
    def facts(self) -> Facts:
        """Return classes, channels and size.

        Raises:
            DataError: if that needs files which are not there, with the path that was looked at.
        """

    @abstractmethod
    def class_names(self) -> tuple[str, ...]:
        """Return a name for each class, in the order of the labels."""

    @abstractmethod
    def load(self, data: SegmentationSection, image_size: int) -> dict[SplitName, MaskSplit]:
        """Load ``train`` and ``test``.

        Raises:
            DataError: if a file is missing.
        """

    @property
    @abstractmethod
    def corrupt(self) -> list[str]:
        """``name (reason)`` of each image that could not be read since :meth:`load`."""
