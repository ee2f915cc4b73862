"""Pixels as tokens: CIFAR-10 in grey, row by row, which is the Image task of Long-Range Arena.

Source: Tay et al., "Long Range Arena", 2021, §2.2. Grey is the luma of ITU-R BT.601, rounded, as Pillow's ``L``:
(19595 R + 38470 G + 7471 B) / 2¹⁶. Long-Range Arena's own program takes TensorFlow's, whose weights are 0.2989, 0.587
and 0.114 and which rounds down more often: one level darker in a quarter of the colours, the same in the others.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from kattn_cli.data.dataset import FileCheck, SequenceDataSet, SequenceFacts
from kattn_cli.data.images import MemorySplit, SplitName
from kattn_cli.data.reading.parquet import parquet_files
from kattn_cli.data.reading.storage import default_root, kept, reading_arrays, stamp_of
from kattn_cli.data.sequences import SequenceSplit
from kattn_cli.data.sets.cifar10 import Cifar10
from kattn_cli.data.sets.huggingface import HuggingFace
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection

CLASSES, SIZE = 10, 32
_SPLITS: tuple[SplitName, ...] = ("train", "test")
_DECODED_AT_ONCE = 4096


class Pixels(SequenceDataSet):
    """CIFAR-10 as sequences of ``size²`` tokens 0 … 255 an image, in 10 classes.

    Long-Range Arena trains on the first 45,000 training images and holds out the other 5,000; here a tenth of every
    class is held out, evenly spread.

    Args:
        root: CIFAR-10's folder as :class:`~kattn_cli.data.sets.cifar10.Cifar10` has it, which is also where it is
            looked for by default; or a folder with ``train.parquet`` and ``test.parquet``, which are decoded once and
            kept under ``$KATTN_DATA/pixels`` or ``~/.cache/kattn/pixels``.
        download: whether to fetch what is missing when it is needed.
        size: pixels a side; Long-Range Arena's is 32. Smaller ones are resized, for small machines.
        train: only the first so many training images.
        test: only the first so many test images.
    """

    name: ClassVar[str] = "pixels"
    description = "CIFAR-10 in grey, pixel by pixel (Long-Range Arena's Image)"
    how_to_get = f"{Cifar10.how_to_get}, or a folder with train.parquet and test.parquet"

    def __init__(
        self,
        *,
        root: str | None = None,
        download: bool = False,
        size: Annotated[int, Field(ge=1, le=SIZE)] = SIZE,
        train: Annotated[int, Field(ge=1)] | None = None,
        test: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.root = Path(root).expanduser() if root else None
        self.download, self.size = download, size
        self.first: dict[SplitName, int | None] = {"train": train, "test": test}

    def facts(self) -> SequenceFacts:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`."""
        return SequenceFacts(classes=CLASSES, seq_len=self.size**2, vocabulary=256)

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root] if self._is_parquet and self.root else self._cifar.places()

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if not self._is_parquet:
            lacking = self._cifar.missing()
            return lacking and lacking.replace(Cifar10.how_to_get, self.how_to_get)
        return "" if self._files("test") else f"there is no test.parquet in {self.root}, beside train.parquet"

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return self._parquet.files() if self._is_parquet else self._cifar.files()

    def fetch(self) -> None:
        """Download CIFAR-10, as :class:`~kattn_cli.data.sets.cifar10.Cifar10` does."""
        self._cifar.fetch()

    def load(self) -> dict[SplitName, SequenceSplit]:
        """Load ``train`` and ``test``, uint8.

        Raises:
            DataError: if a file is missing or damaged, or has other images than CIFAR-10.
        """
        if self.download and self.missing():
            self.fetch()
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        grey = self._kept() if self._is_parquet else _in_grey(self._cifar)
        return {name: self._sequences(split.first(self.first[name])) for name, split in grey.items()}

    def _sequences(self, split: MemorySplit) -> SequenceSplit:
        resized = split if self.size == SIZE else split.resized(self.size)
        return SequenceSplit(resized.images.flatten(1), torch.full((len(split),), self.size**2), split.labels)

    def _kept(self) -> dict[SplitName, MemorySplit]:
        files = [file for name in _SPLITS for file in self._files(name)]
        return kept(default_root(self.name) / f"{stamp_of(files)}.npz", _read, self._write)

    def _write(self, path: Path) -> None:
        grey = self._decoded()
        tensors = [tensor for name in _SPLITS for tensor in (grey[name].images, grey[name].labels)]
        np.savez(path, *[tensor.numpy() for tensor in tensors])

    def _decoded(self) -> dict[SplitName, MemorySplit]:
        source = self._parquet
        facts = source.facts()
        if (facts.classes, facts.image_size) != (CLASSES, SIZE):
            size = f"{facts.image_size} × {facts.image_size} pixels" if facts.image_size else "varying size"
            raise DataError(
                f"{self.name}: {self.root} has images of {size} in {facts.classes} classes; CIFAR-10's are of "
                f"{SIZE} × {SIZE} in {CLASSES}"
            )
        grey = _in_grey(source)
        if source.corrupt:
            raise DataError(f"{self.name}: {source.corrupt[0]} cannot be read; get the parquet files again")
        return grey

    @cached_property
    def _is_parquet(self) -> bool:
        return bool(self._files("train"))

    def _files(self, name: SplitName) -> list[Path]:
        return parquet_files(self.root, None, name) if self.root else []

    @property
    def _parquet(self) -> HuggingFace:
        return HuggingFace(path=str(self.root), in_memory=True)

    @property
    def _cifar(self) -> Cifar10:
        return Cifar10(root=str(self.root) if self.root else None)


def luma(images: Tensor) -> Tensor:
    """Return grey values ``(n, 1, H, W)`` of ``(n, 3, H, W)``, both uint8."""
    red, green, blue = images.int().unbind(1)
    return ((19595 * red + 38470 * green + 7471 * blue + 2**15) >> 16).to(torch.uint8)[:, None]


def _in_grey(source: Cifar10 | HuggingFace) -> dict[SplitName, MemorySplit]:
    data = ImageSection(name=source.name, channels=3, workers=0)
    grey: dict[SplitName, MemorySplit] = {}
    for name, split in source.load(data, SIZE).items():
        assert isinstance(split, MemorySplit)
        images = torch.cat([luma(block) for block in split.images.split(_DECODED_AT_ONCE)])
        grey[name] = MemorySplit(images, split.labels)
    return grey


def _read(path: Path) -> dict[SplitName, MemorySplit]:
    with reading_arrays(), np.load(path, allow_pickle=False) as arrays:
        tensors = [torch.from_numpy(arrays[f"arr_{number}"]) for number in range(4)]
    return {"train": MemorySplit(*tensors[:2]), "test": MemorySplit(*tensors[2:])}
