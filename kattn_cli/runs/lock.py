"""Being the only process that does something, on one machine or several that share a file system. Never imports torch.

A POSIX lock on a file that stays: a child does not inherit it, NFS passes it on, and it is gone with its process,
however that went. A process must not take one twice. On a file system without locks, nobody is kept out.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kattn_cli.errors import RunError
from kattn_cli.runs.whole_file import faults_as


class Held(RunError):
    """Another process does it already."""


@contextmanager
def holding(path: Path, taken: str) -> Iterator[None]:
    """Hold the lock ``path`` until the block is left.

    Raises:
        Held: if another process does: ``taken`` and who, as ``results/a/0: is being trained by process 7 on host b``.
        RunError: if the file cannot be written.
    """
    with faults_as(RunError, path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            holder = os.read(descriptor, 300).decode(errors="replace").strip() or "another process"
            raise Held(f"{taken} by {holder}") from None
        except OSError:
            pass
        with suppress(OSError):  # the lock counts, also on a full disk; who holds it is for people
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on host {socket.gethostname()}\n".encode())
        yield
    finally:
        os.close(descriptor)
