"""Where a number comes from: the code, the packages, the machine, the moment. Never imports torch."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import kattn_cli

PACKAGES = (
    *("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pandas", "aeon", "tokenizers"),
    *("gymnasium", "mujoco", "stable-baselines3"),
)
"""Of those that are not installed nothing is said."""


def provenance(device: str) -> dict[str, Any]:
    """Return commit (None outside a checkout), whether it was dirty, versions, machine, device, command, time."""
    commit, dirty = _commit()
    return {
        "command": as_typed(),
        "commit": commit,
        "dirty": dirty,
        "versions": _versions(),
        "machine": _machine(),
        "device": device,
        "start": now(),
    }


_CALL: ContextVar[str] = ContextVar("call", default="")


def as_typed() -> str:
    """Return the command that is being run, or the Python call."""
    return _CALL.get() or shlex.join(["kattn", *sys.argv[1:]])


@contextmanager
def called(text: str) -> Iterator[None]:
    """Have manifests say that ``text`` was called in Python; of calls within each other the outermost counts."""
    token = _CALL.set(_CALL.get() or text)
    try:
        yield
    finally:
        _CALL.reset(token)


def now() -> str:
    """Return the time in UTC, ISO 8601, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


@cache
def _commit() -> tuple[str | None, bool | None]:
    checkout = Path(kattn_cli.__file__).parent.parent
    if not (checkout / ".git").exists():
        return None, None
    try:
        commit = _git(checkout, "rev-parse", "HEAD")
        return commit, bool(_git(checkout, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return None, None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _versions() -> dict[str, str]:
    versions = {"kattn": kattn_cli.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
