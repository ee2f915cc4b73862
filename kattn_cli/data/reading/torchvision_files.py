"""Data sets of image files that torchvision can download and list."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from torch import Tensor
from torchvision.datasets.utils import calculate_md5

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import Split, SplitName
from kattn_cli.data.reading.encoded import Paths
from kattn_cli.data.reading.files import FileDataSet
from kattn_cli.data.reading.storage import default_root, downloading
from kattn_cli.recipe.data import ImageSection


class TorchvisionFiles(FileDataSet):
    """Image files that torchvision downloads; ``root``: the folder that holds torchvision's own, or that folder.

    By default ``$KATTN_DATA/<name>`` or ``~/.cache/kattn/<name>``.
    ``download``: whether to fetch what is missing when it is needed.
    ``in_memory``: see :class:`~kattn_cli.data.reading.files.FileDataSet`.
    """

    base_folder: ClassVar[str]
    """Torchvision's folder below ``root``."""

    needed: ClassVar[tuple[str, ...]]
    """What must be in it."""

    def __init__(self, *, root: str | None = None, download: bool = False, in_memory: bool | None = None) -> None:
        super().__init__(in_memory)
        given = Path(root).expanduser() if root else default_root(self.name)
        self.root = given.parent if given.name == self.base_folder else given
        self.download = download

    @abstractmethod
    def read(self) -> Mapping[SplitName, tuple[Paths, Tensor]]:
        """Return the image files of each split, and their labels ``(n,)``.

        Raises:
            DataError: if a file that lists them is damaged.
        """

    @abstractmethod
    def download_all(self) -> None:
        """Let torchvision download and unpack."""

    @property
    def folder(self) -> Path:
        """Where the files lie."""
        return self.root / self.base_folder

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        path = next((self.folder / name for name in self.needed if not (self.folder / name).exists()), None)
        return f"there is no {path}; {self.how_to_get}" if path else ""

    def load(self, data: ImageSection, image_size: int) -> dict[SplitName, Split]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if self.download and self.missing():
            self.fetch()
        self.require()
        return self.split_up(self.read(), data, image_size)

    def fetch(self) -> None:
        """Download and unpack into ``root``."""
        with downloading(self.name, self.root, self.how_to_get):
            self.download_all()


def check_md5(path: Path, md5: str) -> FileCheck:
    """Return the check of a file: whether it is there, and has its MD5 sum."""
    if not path.is_file():
        return FileCheck(path, "missing")
    try:
        found = calculate_md5(str(path))
    except OSError as error:
        return FileCheck(path, "wrong checksum", f"cannot be read: {error.strerror}")
    return FileCheck(path, "ok") if found == md5 else FileCheck(path, "wrong checksum", f"md5 {found}, not {md5}")


def check_images(folder: Path, expected: int) -> FileCheck:
    """Return the check of a folder: whether it holds as many ``.jpg`` files as it should."""
    found = sum(entry.name.endswith(".jpg") for entry in os.scandir(folder)) if folder.is_dir() else 0
    detail = f"{found:,} of {expected:,} images"
    return FileCheck(folder, "no checksum known" if found >= expected else "missing", detail)
