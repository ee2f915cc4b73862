"""Files that are whole or not there at all, whatever fills up or dies meanwhile. Never imports torch.

What is being written lies in a folder of its own beside the file, ``.<name>.<host>.<process>``, and takes the file's
name when all of it is on disk. One that a killed process left is removed when the file is written again.
"""

from __future__ import annotations

import glob
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kattn_cli.errors import KattnError, RunError
from kattn_cli.runs.process import is_alive

STALE_SECONDS = 3600.0
"""After which what another host was writing counts as given up; on this host its process is asked for."""


@contextmanager
def faults_as(error: type[KattnError], path: Path) -> Iterator[None]:
    """Turn the system's faults into ``error``: ``<path>: cannot be written: No space left on device``."""
    try:
        yield
    except OSError as fault:
        raise error(f"{path}: cannot be written: {fault.strerror or fault}") from None


@contextmanager
def being_made(path: Path) -> Iterator[Path]:
    """Yield where to make the file or folder that is to take the name ``path``; what is not taken away goes again.

    Raises:
        OSError: if its folder cannot be made.
    """
    folders_to_disk(path.parent)
    remove_stale(path)
    folder = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
    # One of this process may be left: NFS keeps what was removed while it was open, and its folder with it.
    folder.mkdir(exist_ok=True)
    try:
        yield folder / path.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replacing(path: Path, keep: Path | None = None) -> Iterator[Path]:
    """Yield where to write what takes the name ``path`` when the block ends; after an error ``path`` is as it was.

    The file that had the name until then is called ``keep`` afterwards, if that is given. At every instant at least
    one of the two names means a whole file, once there was one.

    Raises:
        OSError: if it cannot be written, or not made to stay.
    """
    with being_made(path) as new:
        yield new
        to_disk(new)
        if keep is not None and path.exists():
            _replace_and_keep(new, path, keep)
        else:
            os.replace(new, path)
        names_to_disk(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` whole, and let it take the file's name when it is on disk.

    Raises:
        RunError: if it cannot be written; what was there before stays.
    """
    with faults_as(RunError, path), replacing(path) as neighbour:
        neighbour.write_text(text, encoding="utf-8", newline="")


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` as :func:`write_text` does text."""
    with faults_as(RunError, path), replacing(path) as neighbour:
        neighbour.write_bytes(data)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are not there.

    Raises:
        RunError: if it cannot be made.
    """
    with faults_as(RunError, path):
        folders_to_disk(path)


def folders_to_disk(path: Path) -> None:
    """Make a folder and those above it, where they are not there; a power failure does not take them away again.

    Raises:
        OSError: if it cannot be made.
    """
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in new:
        names_to_disk(folder.parent)


def names_to_disk(folder: Path) -> None:
    """Put the names of what is in ``folder`` on disk; some network file systems do not know this of folders."""
    with suppress(OSError):
        to_disk(folder)


def _replace_and_keep(new: Path, path: Path, keep: Path) -> None:
    """Replace ``path``; ``keep`` gives way last, so that it is there should ``path`` turn out to be damaged."""
    old = new.with_name("old")
    try:
        os.link(path, old)
    except OSError:  # a file system without hard links
        os.replace(path, keep)
        os.replace(new, path)
    else:
        os.replace(new, path)
        os.replace(old, keep)


def to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are where a power cut leaves them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_stale(path: Path) -> None:
    """Remove what is left of attempts of processes that are gone to make ``path``."""
    prefix = f".{path.name}."
    for left in path.parent.glob(f"{glob.escape(prefix)}*"):
        host, _, process = left.name.removeprefix(prefix).rpartition(".")
        if not process.isdecimal():
            continue
        own = host == socket.gethostname() and (int(process) == os.getpid() or not is_alive(int(process)))
        with suppress(OSError):
            if own or time.time() - left.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
