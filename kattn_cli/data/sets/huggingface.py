"""Image data sets of the Hugging Face hub, or parquet files laid out as they are there.

Local parquet is read into memory as it lies, up to 4 GiB; what is larger, and what comes from the hub, goes through
``datasets``, which keeps a copy of its own in its cache and maps it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from kattn_cli.data.dataset import Facts, FileCheck
from kattn_cli.data.images import Split, SplitName
from kattn_cli.data.reading.files import FileDataSet
from kattn_cli.data.reading.network import hub
from kattn_cli.data.reading.parquet import (
    check_parquet,
    features,
    first_line,
    image_column,
    label_column,
    parquet_files,
    read_parquet,
    splits_there,
)
from kattn_cli.errors import DataError, did_you_mean
from kattn_cli.recipe.data import ImageSection

if TYPE_CHECKING:
    import pyarrow as pa

IN_MEMORY_PARQUET = 4 * 1024**3
_LOOKED_AT = 256
_HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
_GREY = ("1", "L", "LA")


class HuggingFace(FileDataSet):
    """A data set with a column of images and a column of labels: whole numbers from 0, or names.

    Args:
        path: a name on the hub such as ``uoft-cs/cifar10``, or a folder with ``train.parquet`` and ``test.parquet``;
            for other names see :func:`~kattn_cli.data.reading.parquet.parquet_files`.
        config: which of several configurations.
        image: the column of images; by default the only one.
        label: the column of labels; by default the only one.
        train: the split to train on.
        test: the split to report on.
        validation_split: the split to choose the best epoch by, where there is one.
        in_memory: see :class:`~kattn_cli.data.reading.files.FileDataSet`.
    """

    name = "huggingface"
    description = "a data set of the Hugging Face hub, or parquet files"
    how_to_get = "give data.path: a name on the Hugging Face hub, or a folder with train.parquet and test.parquet"
    path_options = ("path",)

    def __init__(
        self,
        *,
        path: str,
        config: str | None = None,
        image: str | None = None,
        label: str | None = None,
        train: str = "train",
        test: str = "test",
        validation_split: str | None = None,
        in_memory: bool | None = None,
    ) -> None:
        super().__init__(in_memory)
        self.path, self.config, self.image, self.label = path, config, image, label
        self.split_names: dict[SplitName, str] = {"train": train, "test": test}
        if validation_split:
            self.split_names["validation"] = validation_split
        self._folder = Path(path).expanduser()
        self._is_local = self._folder.exists() or not _HUB_NAME.fullmatch(path)
        self._tables: dict[SplitName, pa.Table] = {}

    def facts(self) -> Facts:
        """See :class:`~kattn_cli.data.dataset.DataSet`; from some of the training images, and all of their labels.

        ``image_size`` is theirs where they are squares of one size.
        """
        shape = self._shape
        return Facts(len(self._classes), shape.channels, shape.size, own_validation="validation" in self.split_names)

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self._folder if self._is_local else _hub_cache(self.path)]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if not self._is_local:
            return "" if _hub_cache(self.path).is_dir() else self._not_here()
        if not self._folder.is_dir():
            what = "is a file; give its folder" if self._folder.is_file() else "is no folder"
            return f"data.path: {self._folder} {what}; {self.how_to_get}"
        for key, split in self.split_names.items():
            if not parquet_files(self._folder, self.config, split):
                there = splits_there(self._folder, self.config)
                hint = did_you_mean(split, there) or f"; there are {', '.join(there) or 'no parquet files'}"
                option = "validation_split" if key == "validation" else key
                return f"data.{option}: {self._folder} has no {split}.parquet or {split}-*.parquet{hint}"
        return ""

    def load(self, data: ImageSection, image_size: int) -> dict[SplitName, Split]:
        """See :class:`~kattn_cli.data.dataset.DataSet`.

        Images of one size are not cropped. Where the recipe gives no size, one of another size counts as unreadable.
        """
        size = self._shape.size
        parts = {name: (self._rows(name), self._labels(name)) for name in self.split_names}
        self._tables.clear()
        return self.split_up(
            parts,
            data,
            image_size,
            channels=self._shape.channels,
            crop_pct=1.0 if size else None,
            only_size=None if data.image_size else size,
        )

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if not self._is_local:
            cache = _hub_cache(self.path)
            return [FileCheck(cache, "no checksum known" if cache.is_dir() else "missing", "the cache of datasets")]
        checks = []
        for split in self.split_names.values():
            found = [check_parquet(file) for file in parquet_files(self._folder, self.config, split)]
            checks += found or [FileCheck(self._folder / f"{split}.parquet", "missing")]
        return checks

    def fetch(self) -> None:
        """Let ``datasets`` download it from the hub."""
        if self._is_local:
            raise DataError(f"{self.name}: data.path: {self.path} is a folder of your own, which cannot be fetched")
        for split in self.split_names.values():
            self._of_hub(split)

    @cached_property
    def _shape(self) -> _Shape:
        return _shape_of(self._rows("train"))

    @cached_property
    def _classes(self) -> Sequence[int | str]:
        column = self._label_column
        if names := features(self._table("train")).get(column, {}).get("names"):
            return range(len(names))
        values = self._values("train")
        kinds = {type(value) for value in values}
        distinct = sorted(set(values)) if len(kinds) == 1 else []
        if kinds == {str} or distinct == list(range(len(distinct))) != []:
            return distinct
        raise DataError(
            f"{self._where('train')}: the labels in column {column} must be all of 0 … K − 1, or names; they are "
            + (f"{len(distinct)} from {distinct[0]} to {distinct[-1]}" if distinct else "some of each")
        )

    @cached_property
    def _label_column(self) -> str:
        return label_column(self._table("train"), self.label, self._where("train"))

    @cached_property
    def _image_column(self) -> str:
        return image_column(self._table("train"), self.image, self._where("train"))

    def _labels(self, name: SplitName) -> Tensor:
        values = self._values(name)
        numbers = {value: number for number, value in enumerate(self._classes)}
        for row, value in enumerate(values):
            if value not in numbers:
                hint = did_you_mean(value, map(str, numbers)) if isinstance(value, str) else ""
                raise DataError(
                    f"{self._where(name)}, row {row}: label {value} is none of the {len(numbers)} classes{hint}"
                )
        return torch.tensor([numbers[value] for value in values], dtype=torch.int64)

    def _values(self, name: SplitName) -> list[Any]:
        """Return the labels as they are in the table."""
        values = self._column(name, self._label_column).to_pylist()
        for row, value in enumerate(values):
            if not isinstance(value, int | str):
                raise DataError(f"{self._where(name)}, row {row}: label {value} is neither a whole number nor a name")
        return values

    def _rows(self, name: SplitName) -> Rows:
        return Rows(self._column(name, self._image_column), self._where(name))

    def _column(self, name: SplitName, column: str) -> pa.ChunkedArray:
        table = self._table(name)
        if column not in table.column_names:
            raise DataError(f"{self._where(name)} has no column {column}; its columns are {table.column_names}")
        if not len(table):
            raise DataError(f"{self._where(name)} has no rows")
        return table.column(column)

    def _where(self, name: SplitName) -> str:
        return f"{self.path}, {self.split_names[name]}"

    def _table(self, name: SplitName) -> pa.Table:
        if name not in self._tables:
            self._tables[name] = self._read(self.split_names[name])
        return self._tables[name]

    def _read(self, split: str) -> pa.Table:
        self.require()
        if not self._is_local:
            return self._of_hub(split)
        files = parquet_files(self._folder, self.config, split)
        if sum(file.stat().st_size for file in files) <= IN_MEMORY_PARQUET:
            return read_parquet(files)
        return self._through_datasets("parquet", data_files={split: [str(file) for file in files]}, split=split)

    def _of_hub(self, split: str) -> pa.Table:
        import datasets  # noqa: F401 - hub() tells it whether there is a network

        with hub() as silent:
            try:
                return self._through_datasets(self.path, self.config, split=split)
            except DataError as error:
                raise (DataError(f"{self.name}: {self._not_here()} ({silent})") if silent else error) from None

    def _through_datasets(self, *args: Any, **kwargs: Any) -> pa.Table:
        import datasets

        try:
            found = datasets.load_dataset(*args, **kwargs)
        except Exception as error:  # datasets raises nearly anything, its own and its readers'
            raise DataError(f"{self.name}: {self._not_here()} ({first_line(error)})") from error
        return found.data.table.replace_schema_metadata(found.features.arrow_schema.metadata)

    def _not_here(self) -> str:
        arguments = ", ".join(f"'{value}'" for value in (self.path, self.config) if value)
        return (
            f"data.path: {self.path} is neither a folder nor in {_hub_cache(self.path).parent}; where there is a "
            f'network, load it once: python -c "import datasets; datasets.load_dataset({arguments})"; '
            "or give a folder with train.parquet and test.parquet"
        )


@dataclass(frozen=True)
class Rows:
    """A column of images: bytes, or Hugging Face's ``{bytes, path}``, of which ``bytes`` goes first."""

    column: pa.ChunkedArray
    where: str

    def source(self, row: int) -> str | bytes:
        """See :class:`~kattn_cli.data.reading.encoded.Encoded`; an image that is null has no bytes."""
        value = self.column[row].as_py()
        if isinstance(value, dict):
            value = value.get("bytes") or value.get("path")
        return value or b""

    def name(self, row: int) -> str:
        """See :class:`~kattn_cli.data.reading.encoded.Encoded`."""
        return f"{self.where}, row {row}"


@dataclass(frozen=True)
class _Shape:
    channels: int
    size: int | None


def _shape_of(rows: Rows) -> _Shape:
    """Return channels, and the size that all have in common, of images spread over the column."""
    sizes, modes = set(), set()
    for row in np.unique(np.linspace(0, len(rows.column) - 1, _LOOKED_AT, dtype=np.int64)).tolist():
        source = rows.source(row)
        try:
            with Image.open(BytesIO(source) if isinstance(source, bytes) else source) as image:
                sizes.add(image.size)
                modes.add(image.mode)
        except Exception:  # those that cannot be read are dealt with as they are decoded
            continue
    width, height = sizes.pop() if len(sizes) == 1 else (0, 1)
    return _Shape(channels=1 if modes and modes <= set(_GREY) else 3, size=width if width == height else None)


def _hub_cache(name: str) -> Path:
    """Return where ``datasets`` keeps its copy of a data set."""
    import datasets
    from datasets.naming import camelcase_to_snakecase

    *namespace, last = name.split("/")
    return Path(datasets.config.HF_DATASETS_CACHE) / "___".join([*namespace, camelcase_to_snakecase(last)])
