"""Storage: where data sets lie on disk, how they are downloaded, and how files made from them are kept.

What is generated once is whole or not there, made by one process at a time, and known by what it was made from.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from kattn_cli.data.reading.network import patient
from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing


def default_root(name: str) -> Path:
    """Return ``$KATTN_DATA/<name>``, or ``~/.cache/kattn/<name>`` where that variable is not set."""
    base = os.environ.get("KATTN_DATA")
    return (Path(base).expanduser() if base else Path.home() / ".cache" / "kattn") / name


@contextmanager
def downloading(name: str, root: Path, instead: str) -> Iterator[None]:
    """Hold a lock and report faults around a downloader that leaves alone what is there, so the next process waits.

    Raises:
        DataError: in one line, if it fails: no network, no room, or a wrong checksum.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".downloading"), patient():
            yield
    except (OSError, RuntimeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{name}: cannot be downloaded into {root}: {reason}; {instead}") from None


def stamp_of(files: Iterable[Path], *options: object) -> str:
    """Return a short name for what comes of ``files`` (path, size, time of change) and ``options``.

    Raises:
        OSError: if one of the files is not there.
    """
    found = [(str(path.resolve()), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in files]
    return hashlib.sha256(json.dumps([found, options]).encode()).hexdigest()[:16]


T = TypeVar("T")


class Damaged(Exception):
    """A kept file that is cut short or is not what it should be."""


@contextmanager
def reading_arrays() -> Iterator[None]:
    """Turn what NumPy raises at a damaged file of arrays into :class:`Damaged`; the system's faults stay.

    Of a header it evaluates as Python, and of a zip file's records, a damage may make nearly anything.
    """
    try:
        yield
    except (OSError, Damaged):
        raise
    except Exception:
        raise Damaged from None


def kept(path: Path, read: Callable[[Path], T], write: Callable[[Path], None]) -> T:
    """Return what ``read`` gives of the file at ``path``, which ``write`` makes where there is no sound one.

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
