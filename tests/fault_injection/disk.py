"""A disk that is full, or cannot be written to, in the middle of any command: a line, and nothing lost."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tiny_tasks import write_tiny

from fault_injection.case import Case, chance, judged
from fault_injection.commands import Kattn
from fault_injection.damage import RUN, template
from fault_injection.runs import difference, rows

LARGEST = 60_000
"""Bytes; more than most files of a tiny run have."""
WRITE: dict[str, tuple[str, ...]] = {
    "train": ("train", "tiny.yaml", "--device", "cpu"),
    "train on": ("train", RUN, "--resume", "train.epochs=4", "--device", "cpu"),
    "eval": ("eval", "tiny", "--corruption", "fog", "--corruption", "contrast"),
    "attack": ("attack", "tiny", "--pgd", "--epsilon", "1/255,2/255"),
    "spectrum": ("spectrum", "tiny"),
    "plot": ("plot", "tiny", "--format", "svg"),
    "report": ("report", "--figures"),
    "complexity": ("complexity", "--n", "16", "--n", "32", "--dim", "8", "--heads", "1", "--seconds", "0.01"),
    "eval images": ("eval", "tiny", "--save-images"),
}
"""Commands that write."""


def no_larger_than(size: int) -> None:
    """Let the system refuse to write any file of this process beyond ``size`` bytes, as a disk that fills up does."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def full(kattn: Kattn, times: int, seed: int) -> Iterator[Case]:
    """Let files grow no further than a random size while a command writes; then give the command again."""
    whole = template(kattn)
    write_tiny("images", kattn.folder)
    for number in range(times):
        draw = chance(seed, "full", number)
        results = kattn.folder / f"full-{number}"
        command = draw.choice(sorted(WRITE))
        shutil.copytree(whole, results)
        words = _of(WRITE[command], results)
        size = int(LARGEST ** draw.random())
        said = kattn.run(*words, first=partial(no_larger_than, size))
        yield judged("full disk", f"{command}, no file beyond {size:,} bytes", said, _lost(results, whole, command))
        if command != "train on" or said.verdict != "ok":  # else nothing is left to do
            again = kattn.run(*words, *(["--resume"] if command == "train" else []))
            wrong = again.verdict != "ok" or _lost(results, whole, command)
            yield judged("full disk", f"{command}, again with room", again, "lost" if wrong else "")
        shutil.rmtree(results)


def _of(words: tuple[str, ...], results: Path) -> tuple[str, ...]:
    return (*(str(results / RUN) if word == RUN else word for word in words), "--results", str(results))


def _lost(results: Path, whole: Path, command: str) -> str:
    """Return ``lost`` if what was there before the command is not there after it."""
    if command == "train on":
        kept = [row for row in rows(results / RUN / "metrics.csv") if row in rows(whole / RUN / "metrics.csv")]
        return "lost" if kept != rows(whole / RUN / "metrics.csv") else ""
    before, after = ([_shape(one / RUN / name) for name in ("eval.csv", "attacks.csv")] for one in (whole, results))
    return "lost" if difference(results / RUN, whole / RUN) or any(map(set.difference, before, after)) else ""


def _shape(table: Path) -> set[tuple[tuple[str, str], ...]]:
    """Return a table's rows as a set; new ones may stand anywhere."""
    return {tuple(row.items()) for row in rows(table)}


def poor_file_system() -> None:
    """Let this process meet a file system without hard links, locks and safe folders, as some network shares are."""
    synchronise = os.fsync

    def fsync(descriptor: Any) -> None:
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        synchronise(descriptor)

    def refused(number: int) -> Callable[..., Any]:
        def refuse(*_: Any, **__: Any) -> Any:
            raise OSError(number, os.strerror(number))

        return refuse

    os.fsync = fsync  # type: ignore[assignment]
    os.link = refused(errno.EPERM)
    fcntl.lockf = refused(errno.ENOLCK)


def read_only(kattn: Kattn) -> Iterator[Case]:
    """Let each command meet results that cannot be written to; where this process may not mount, none is tried."""
    if not _may_mount(kattn.folder):
        return
    whole = template(kattn)
    write_tiny("images", kattn.folder)
    for command, words in WRITE.items():
        results = kattn.folder / f"read-only-{command.replace(' ', '-')}"
        shutil.copytree(whole, results)
        said = kattn.run(*_of(words, results), first=partial(mount_read_only, results))
        yield judged("read-only disk", command, said, _lost(results, whole, command))
        shutil.rmtree(results)


_NEW_NAMESPACE, _READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 0x20000, 1, 32, 4096, 16384, 1 << 18


def mount_read_only(folder: Path) -> None:
    """Let this process, and no other, see ``folder`` as a read-only file system.

    Raises:
        OSError: if it may not mount.
    """
    system = ctypes.CDLL(None, use_errno=True)
    name = os.fsencode(folder)
    steps = (
        lambda: system.unshare(_NEW_NAMESPACE),
        lambda: system.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None),
        lambda: system.mount(name, name, None, _BIND, None),
        lambda: system.mount(name, name, None, _BIND | _REMOUNT | _READ_ONLY, None),
    )
    for step in steps:
        if step():
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _may_mount(folder: Path) -> bool:
    process = os.fork()
    if not process:
        try:
            mount_read_only(folder)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(process, 0)[1] == 0
