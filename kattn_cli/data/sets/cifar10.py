"""CIFAR-10: 60,000 photographs of 32 × 32 in 10 classes (Krizhevsky, 2009, https://www.cs.toronto.edu/~kriz/cifar.html).

Read by torchvision, which knows the sum of each file and unpickles none that has another.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import torch
import torchvision.datasets
from torchvision.datasets.utils import check_integrity

from kattn_cli.data.dataset import Facts, FileCheck, ImageDataSet
from kattn_cli.data.images import MemorySplit, Split, SplitName
from kattn_cli.data.reading.storage import default_root, downloading
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection


class Cifar10(ImageDataSet):
    """CIFAR-10; ``root``: the folder that holds ``cifar-10-batches-py``, or that folder itself.

    By default ``$KATTN_DATA/cifar10`` or ``~/.cache/kattn/cifar10``.
    ``download``: whether to fetch what is missing when it is needed.
    """

    name: ClassVar[str] = "cifar10"
    description = "60,000 small photographs"
    instead: ClassVar[str] = "unpack cifar-10-python.tar.gz and give its folder as root"
    """How to come by it where a download fails."""

    how_to_get = f"kattn data fetch cifar10 downloads it, and so does download: true; or {instead}"
    torchvision_class: ClassVar[type[torchvision.datasets.CIFAR10]] = torchvision.datasets.CIFAR10
    classes: ClassVar[int] = 10

    def __init__(self, *, root: str | None = None, download: bool = False) -> None:
        given = Path(root).expanduser() if root else default_root(self.name)
        self.root = given.parent if given.name == self.torchvision_class.base_folder else given
        self.download = download

    def facts(self) -> Facts:
        """See :class:`DataSet`."""
        return Facts(classes=self.classes, channels=3, image_size=32)

    def places(self) -> list[Path]:
        """See :class:`DataSet`."""
        return [self.root]

    def missing(self) -> str:
        """See :class:`DataSet`."""
        path = next((path for path in self._sums() if not os.path.isfile(path)), None)
        return f"there is no file {path}; {self.how_to_get}" if path else ""

    def load(self, data: ImageSection, image_size: int) -> dict[SplitName, Split]:
        """Load training and test images as uint8, of 32 × 32."""
        if self.download and self.missing():
            self.fetch()
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        return {"train": self._read(train=True), "test": self._read(train=False)}

    def _read(self, train: bool) -> MemorySplit:
        try:
            found = self.torchvision_class(self.root, train=train)
        except OSError as error:
            raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from None
        except RuntimeError:
            damaged = next((check.path for check in self.files() if check.status != "ok"), self.root)
            raise DataError(f"{damaged}: is cut short or damaged; remove it and get it again") from None
        images = torch.from_numpy(found.data).permute(0, 3, 1, 2).contiguous()
        return MemorySplit(images, torch.tensor(found.targets, dtype=torch.int64))

    def files(self) -> list[FileCheck]:
        """See :class:`DataSet`."""
        return [self._check(path, md5) for path, md5 in self._sums().items()]

    def _check(self, path: Path, md5: str) -> FileCheck:
        if not os.path.isfile(path):
            return FileCheck(path, "missing")
        try:
            right = check_integrity(path, md5)
        except OSError as error:
            return FileCheck(path, "wrong checksum", f"cannot be read: {error.strerror}")
        return FileCheck(path, "ok" if right else "wrong checksum")

    def fetch(self) -> None:
        """Download and unpack into ``root``."""
        with downloading(self.name, self.root, f"instead, {self.instead}"):
            self.torchvision_class(self.root, download=True)

    def _sums(self) -> dict[Path, str]:
        """Return each file with its MD5 sum."""
        source = self.torchvision_class
        meta = (source.meta["filename"], source.meta["md5"])
        folder = self.root / source.base_folder
        return {folder / name: md5 for name, md5 in (*source.train_list, *source.test_list, meta)}
