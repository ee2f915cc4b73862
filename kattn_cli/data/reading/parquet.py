"""Parquet files named for their splits, and what their columns hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kattn_cli.data.dataset import FileCheck
from kattn_cli.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa


def parquet_files(folder: Path, config: str | None, split: str) -> list[Path]:
    """Return the parquet files of a split, in the first place that has any.

    Places are the folder of ``config``, or ``folder`` and its ``data``; files there ``<split>.parquet``,
    ``<split>-*.parquet`` or ``<split>/*.parquet``.
    """
    for place in _places(folder, config):
        for pattern in (f"{split}.parquet", f"{split}-*.parquet", f"{split}/*.parquet"):
            if found := sorted(place.glob(pattern)):
                return found
    return []


def splits_there(folder: Path, config: str | None) -> list[str]:
    """Return the splits that the parquet files of a folder are named for."""
    places = _places(folder, config)
    names = {re.sub(r"-\d.*", "", file.stem) for place in places for file in place.glob("*.parquet")}
    folders = {file.parent.name for place in places for file in place.glob("*/*.parquet")} - {"data"}
    return sorted(names | folders)


def _places(folder: Path, config: str | None) -> list[Path]:
    return [folder / config] if config else [folder, folder / "data"]


def read_parquet(files: list[Path]) -> pa.Table:
    """Read several files as one table.

    Raises:
        DataError: if one cannot be read, or they differ in their columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for file in files:
        try:
            table = pq.ParquetFile(file).read()
            # Texts that are no UTF-8, and what is said of the columns, are read only now.
            table.validate(full=True)
            features(table)
            tables.append(table)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, pa.ArrowException) as error:
            raise DataError(f"{file}: cannot be read as parquet: {first_line(error)}") from error
    try:
        return pa.concat_tables(tables)
    except pa.ArrowException as error:
        raise DataError(f"{files[0]} and {len(files) - 1} more differ in their columns: {first_line(error)}") from error


def check_parquet(file: Path) -> FileCheck:
    """Return the check of a file: whether it can be read as parquet, and its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_metadata(file).num_rows
    except (OSError, pa.ArrowException) as error:
        return FileCheck(file, "wrong checksum", f"cannot be read as parquet: {first_line(error)}")
    return FileCheck(file, "no checksum known", f"{rows:,} rows")


def features(table: pa.Table) -> dict[str, Any]:
    """Return what Hugging Face's metadata gives for each column; nothing where there is none."""
    metadata = (table.schema.metadata or {}).get(b"huggingface")
    return json.loads(metadata)["info"]["features"] if metadata else {}


def image_column(table: pa.Table, given: str | None, where: str) -> str:
    """Return the column ``given``, or the only one of images, or of bytes.

    Raises:
        DataError: if there is none, or no only one.
    """
    found = [name for name, feature in features(table).items() if feature.get("_type") == "Image"]
    found = found or [field.name for field in table.schema if _holds_bytes(field.type)]
    return _chosen("image", table, given, found, where)


def label_column(table: pa.Table, given: str | None, where: str) -> str:
    """Return the column ``given``, or the only one of class labels, or that is called label, or of whole numbers.

    Raises:
        DataError: if there is none, or no only one.
    """
    found = [name for name, feature in features(table).items() if feature.get("_type") == "ClassLabel"]
    found = found or [name for name in table.column_names if name in ("label", "labels")]
    found = found or [field.name for field in table.schema if str(field.type).startswith(("int", "uint"))]
    return _chosen("label", table, given, found, where)


def _holds_bytes(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    if types.is_struct(kind):
        return any(kind.field(number).name == "bytes" for number in range(kind.num_fields))
    return types.is_binary(kind) or types.is_large_binary(kind)


def _chosen(what: str, table: pa.Table, given: str | None, found: list[str], where: str) -> str:
    there = ", ".join(table.column_names)
    if given is not None:
        if given not in table.column_names:
            hint = did_you_mean(given, table.column_names) or f"; its columns are {there}"
            raise DataError(f"data.{what}: {where} has no column {given}{hint}")
        return given
    if len(found) != 1:
        reason = f"it may be any of {', '.join(found)}" if found else f"none of {there} looks like it"
        raise DataError(f"data.{what}: say which column of {where} holds the {what}s; {reason}")
    return found[0]


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or else its kind."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
