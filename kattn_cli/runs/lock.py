"""Being the only process that does something, on one machine or several that share a file system. Never imports torch.

A POSIX lock on a file that stays: a child does not inherit it, NFS passes it on, and it is gone with its process,
however that went. On a file system without locks, nobody is kept out. Two kinds of them, side by side:

- :func:`holding`, as long as something takes: a training, a sweep. Whoever comes second is refused. A process must not
  take one twice.
- :func:`writing`, for the moment in which a file is read, changed and written. Whoever comes second waits.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kattn_cli.errors import RunError
from kattn_cli.runs.whole_file import faults_as

WRITING = ".writing.lock"
PATIENCE = 60.0
"""Seconds that :func:`writing` waits; nobody takes so long who is alive and not stopped."""
_PAUSE = 0.01
"""Seconds between two attempts to take a lock."""

_threads: dict[Path, threading.RLock] = {}
"""Of each lock that this process writes under: which of its threads does. POSIX locks do not tell threads apart."""
_taken: set[Path] = set()
"""The locks that this process has now: closing any second descriptor of such a file would let go of it."""


class Held(RunError):
    """Another process does it already."""


def _forget() -> None:
    _threads.clear()
    _taken.clear()


os.register_at_fork(after_in_child=_forget)


@contextmanager
def holding(path: Path, taken: str) -> Iterator[None]:
    """Hold the lock ``path`` until the block is left.

    Raises:
        Held: if another process does: ``taken`` and who, as ``results/a/0: is being trained by process 7 on host b``.
        RunError: if the file cannot be written.
    """
    with faults_as(RunError, path):
        descriptor = _open(path)
    with _locked(descriptor, taken, patience=0):
        yield


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Be the only process, and its only thread, that changes ``path`` and other files of its folder.

    Within the block the same thread may enter another one. What is changed must be read within the block, too.

    Raises:
        Held: if another one does so for longer than :data:`PATIENCE`: the path and who.
        RunError: if the folder cannot be written to.
    """
    lock = Path(os.path.realpath(path.parent), WRITING)
    with _only_thread(lock, path):
        if lock in _taken:
            yield
            return
        with faults_as(RunError, path):
            descriptor = _open(lock)
        with _locked(descriptor, f"{path}: its folder is being written to", PATIENCE):
            _taken.add(lock)
            try:
                yield
            finally:
                _taken.remove(lock)


@contextmanager
def _only_thread(lock: Path, path: Path) -> Iterator[None]:
    turn = _threads.setdefault(lock, threading.RLock())
    if not turn.acquire(timeout=PATIENCE):
        raise Held(f"{path}: its folder is being written to by another thread, for {PATIENCE:.0f} s now")
    try:
        yield
    finally:
        turn.release()


def _open(path: Path) -> int:
    """Return a descriptor of a lock's file; who may write to its folder may take it, whoever made the file."""
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(OSError):
            os.fchmod(descriptor, path.parent.stat().st_mode & 0o666)
        return descriptor


@contextmanager
def _locked(descriptor: int, taken: str, patience: float) -> Iterator[None]:
    """Lock an open file, and close it in the end, which lets go of it."""
    try:
        _take(descriptor, taken, patience)
        with suppress(OSError):  # the lock counts, also on a full disk; who holds it is for people
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on host {socket.gethostname()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, taken: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except (BlockingIOError, PermissionError):
            if time.monotonic() < deadline:
                time.sleep(_PAUSE)
                continue
            holder = os.pread(descriptor, 300, 0).decode(errors="replace").strip() or "another process"
            waited = f", for {patience:.0f} s now; end it, or try again" if patience else ""
            raise Held(f"{taken} by {holder}{waited}") from None
        except OSError:  # a file system without locks
            return
