"""Which process does something, as a manifest names it, and whether it is alive. Never imports torch."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NO_PROCESS = {"pid": None, "pid_start": None, "host": None}
"""What a manifest says when nothing is at work."""


def this_process() -> dict[str, Any]:
    """Return this process as a manifest names it: its number, when it began, and the host."""
    return {"pid": os.getpid(), "pid_start": start_of(os.getpid()), "host": socket.gethostname()}


def is_here(manifest: Mapping[str, Any]) -> bool:
    """Return whether the process that a manifest names is of this host."""
    return bool(manifest.get("host") == socket.gethostname())


def may_be_alive(manifest: Mapping[str, Any]) -> bool:
    """Return whether the process that a manifest names is alive; of one on another host nobody knows."""
    process = manifest.get("pid")
    return isinstance(process, int) and (not is_here(manifest) or is_alive(process, manifest.get("pid_start")))


def is_alive(process: int, start: str | None = None) -> bool:
    """Return whether this host has a process of that number, begun at ``start`` (:func:`start_of`) where that is known.

    After a restart, of a container above all, another process may have the number.
    """
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return start is None or start_of(process) in (start, None)


def start_of(process: int) -> str | None:
    """Return when a process began, in clock ticks since the machine did; None where the system does not tell."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
