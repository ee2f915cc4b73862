"""Texts with a class each: out of a file, or from the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.parquet import first_line
from kattn_cli.errors import DataError


class Labelled(NamedTuple):
    """Texts, and the class of each, from 0; named as the columns of the Hugging Face hub."""

    text: list[str]
    label: list[int]


def from_hub(name: str, hub: str, split: SplitName) -> Labelled:
    """The columns ``text`` and ``label`` of ``hub``, a name there.

    Raises:
        DataError: in one line, if they cannot be downloaded.
    """
    import datasets

    try:
        found = datasets.load_dataset(hub, split=split)
        return Labelled(list(found["text"]), list(found["label"]))
    except Exception as error:  # datasets raises nearly anything, its own and its readers'
        raise DataError(f"{name}: {hub} cannot be downloaded from the Hugging Face hub: {first_line(error)}") from None


def text_of(path: Path) -> str:
    """What a file holds.

    Raises:
        DataError: if it cannot be read, is not UTF-8, or is empty.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        place = f"byte 0x{error.object[error.start]:02x} at offset {error.start:,}"
        raise DataError(f"{path}: is not UTF-8: {place}; convert it, for instance with iconv") from None
    if not text.strip():
        raise DataError(f"{path}: is empty")
    return text
