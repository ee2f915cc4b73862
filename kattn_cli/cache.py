"""Caches of files that can be made again, each named by what it was made of: a bound on them, and what is in them.

The files of one entry share their name up to its first point. Whoever uses one holds it, and what is held by a living
process stays. A file's time of change is that of its last use, since many disks keep no time of access.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

DAYS = 30
"""After which an entry that nobody used goes."""

SIZE = 32 * 1024**3
"""Bytes above which the entries go that were not used for longest, but for the last one."""


@dataclass(frozen=True)
class Entry:
    """The files of one entry; ``bytes_`` of all, and the time of the ``last_use`` of any, in seconds."""

    paths: tuple[Path, ...]
    bytes_: int
    last_use: float

    def remove(self) -> bool:
        """Remove the files, or return False if a living process holds one, or they cannot be removed."""
        held: list[int] = []
        try:
            for path in self.paths:
                held.append(os.open(path, os.O_RDONLY))
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self.paths:
                path.unlink()
        except OSError:
            return False
        finally:
            for descriptor in held:
                os.close(descriptor)
        return True


def hold(path: Path) -> int:
    """Note a use of the file, and keep it from being removed until the descriptor that is returned is closed.

    Raises:
        OSError: if it is not there, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY)
    with suppress(OSError):  # a cache may be another user's, or on a disk without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.utime(path)
    return descriptor


def entries(folder: Path, pattern: str = "*") -> list[Entry]:
    """Return the entries whose files match, the one first that was not used for longest."""
    found = sorted(_files(folder, pattern), key=lambda one: _stem(one[0]))
    grouped = [list(group) for _, group in groupby(found, key=lambda one: _stem(one[0]))]
    made = [
        Entry(
            tuple(path for path, _ in group),
            sum(stat.st_size for _, stat in group),
            max(stat.st_mtime for _, stat in group),
        )
        for group in grouped
    ]
    return sorted(made, key=lambda entry: entry.last_use)


def sweep(folder: Path, pattern: str = "*") -> None:
    """Remove entries until the rest keeps to :data:`DAYS` and :data:`SIZE`; called where one was written."""
    there = entries(folder, pattern)
    total = sum(entry.bytes_ for entry in there)
    for entry in there[:-1]:
        old = time.time() - entry.last_use > DAYS * 24 * 3600
        if (old or total > SIZE) and entry.remove():
            total -= entry.bytes_


def _files(folder: Path, pattern: str) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield files and their facts; what begins with a point is being written, and what vanishes is no fault."""
    for path in folder.glob(pattern):
        with suppress(OSError):
            if not path.name.startswith(".") and path.is_file():
                yield path, path.stat()


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]
