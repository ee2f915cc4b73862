"""``kattn`` as a user types it, each time in a process of its own that can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

Verdict = Literal["ok", "refused", "stopped", "killed", "traceback", "hangs"]
PATIENCE = 300.0
"""Seconds after which a command hangs."""
_ONE_LINE = 3
"""Lines that a refusal may have: a fault, what it means, and what to do; a recipe's faults have a line each."""


@dataclass(frozen=True)
class Said:
    """A command and what came of it: its exit code (−9 where it was killed), both outputs, the seconds it took."""

    words: tuple[str, ...]
    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """``traceback`` also where a process dies of a signal that nobody sent it."""
        if self.code is None:
            return "hangs"
        if "Traceback (most recent call last)" in self.err + self.out:
            return "traceback"
        named: dict[int, Verdict] = {0: "ok", 2: "refused", -signal.SIGKILL: "killed", 130: "stopped"}
        return named.get(self.code, "traceback")


class Command:
    """A command that is running."""

    def __init__(self, words: tuple[str, ...], process: BaseProcess, out: Path, err: Path) -> None:
        self.words, self._process, self._out, self._err = words, process, out, err
        self._begun = time.monotonic()

    def ended(self, within: float) -> bool:
        """Return whether it ended in the next ``within`` seconds."""
        self._process.join(within)
        return self._process.exitcode is not None

    def kill(self) -> None:
        """Kill it and its children, as a power cut would."""
        assert self._process.pid is not None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended, or has not begun
            self._process.kill()

    def said(self, patience: float = PATIENCE) -> Said:
        """Wait for its end; what hangs is killed."""
        ended = self.ended(patience)
        seconds = time.monotonic() - self._begun
        if not ended:
            self.kill()
        self._process.join()
        out, err = (path.read_text(errors="replace") if path.exists() else "" for path in (self._out, self._err))
        return Said(self.words, self._process.exitcode if ended else None, out, err, seconds)


class Kattn:
    """Starts commands in ``folder``; all that they keep elsewhere, such as caches, goes below it too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()
        self._said = folder / ".said"
        self._said.mkdir(parents=True, exist_ok=True)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["fault_injection.preload"])

    def start(
        self, *words: str | Path, first: Callable[[], object] | None = None, env: Mapping[str, str] | None = None
    ) -> Command:
        """Begin a command; ``first`` is called in its process before it."""
        number = next(self._numbers)
        out, err = self._said / f"{number}.out", self._said / f"{number}.err"
        texts = tuple(map(str, words))
        caches = {"XDG_CACHE_HOME": ".cache", "TORCHINDUCTOR_CACHE_DIR": ".inductor"}
        everywhere = {"OMP_NUM_THREADS": "1", **{name: str(self.folder / below) for name, below in caches.items()}}
        arguments = (texts, self.folder, out, err, first, {**everywhere, **(env or {})})
        process = self._context.Process(target=_command, args=arguments)
        process.start()
        return Command(texts, process, out, err)

    def run(
        self, *words: str | Path, first: Callable[[], object] | None = None, env: Mapping[str, str] | None = None
    ) -> Said:
        """Run a command to its end."""
        return self.start(*words, first=first, env=env).said()

    def must(self, *words: str | Path) -> Said:
        """Run a command that nothing disturbs.

        Raises:
            AssertionError: if it fails all the same.
        """
        said = self.run(*words)
        assert said.verdict == "ok", f"kattn {' '.join(said.words)}\n{said.out}{said.err}"
        return said


def _command(
    words: tuple[str, ...],
    folder: Path,
    out: Path,
    err: Path,
    first: Callable[[], object] | None,
    env: Mapping[str, str],
) -> None:
    os.setsid()
    for path, stream in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), stream)
    os.chdir(folder)
    os.environ |= env
    import torch

    torch.set_num_threads(1)
    sys.argv = ["kattn", *words]
    if first:
        first()
    from kattn_cli import cli

    try:
        cli.main()
        code: object = 0
    except SystemExit as leaving:
        code = leaving.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)
