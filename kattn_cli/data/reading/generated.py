"""Data that are generated once and kept: in a file that is whole or not there, made by one process at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing

T = TypeVar("T")


class Damaged(Exception):
    """A kept file that is cut short or is not what it should be."""


def kept(path: Path, read: Callable[[Path], T], write: Callable[[Path], None]) -> T:
    """What ``read`` gives of the file at ``path``, which ``write`` makes where there is none or a damaged one.

    Where another process is making it, this one waits. ``write`` is called with another path, whose file takes the
    name ``path`` when it is whole. ``read`` raises :class:`Damaged` of a file that it cannot use.

    Raises:
        DataError: if the file cannot be read or written, with the system's reason.
    """
    if (found := _read(path, read)) is not None:
        return found
    with faults_as(DataError, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            if (found := _read(path, read)) is not None:
                return found
            with replacing(path) as new:
                write(new)
    return read(path)


def _read(path: Path, read: Callable[[Path], T]) -> T | None:
    try:
        return read(path) if path.is_file() else None
    except Damaged:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
