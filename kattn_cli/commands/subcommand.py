"""Run subcommands as processes of their own, which keep their own results."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence

from kattn_cli.errors import KattnError, Stopped

_STOPPED = (130, 143)
"""Exit codes after Ctrl-C and SIGTERM."""
_TICK = 0.1


def call(arguments: Sequence[str]) -> None:
    """Run one subcommand, which prints its own bars.

    Raises:
        KattnError, Stopped: if it failed, or was stopped, which it has said itself.
    """
    for _ in call_all([arguments], jobs=1):
        pass


def call_all(commands: Sequence[Sequence[str]], jobs: int) -> Iterator[int]:
    """Run subcommands, ``jobs`` at once on shares of the cores; yield the number of each as it comes to its end.

    After a first failure nothing more is begun; what is at work comes to its end.

    Raises:
        KattnError, Stopped: if one failed, or was stopped, which it has said itself.
    """
    waiting = list(enumerate(commands))[::-1]
    at_work: dict[int, subprocess.Popen[bytes]] = {}
    failed: list[KattnError] = []
    stopped = False
    while at_work or (waiting and not failed and not stopped):
        try:
            while waiting and len(at_work) < jobs and not failed and not stopped:
                number, arguments = waiting.pop()
                at_work[number] = _begin(arguments, jobs)
            number = _first_done(at_work)
        except KeyboardInterrupt:
            stopped = True
            continue
        code = at_work.pop(number).returncode
        if code in _STOPPED or code == -2:
            stopped = True
        elif code:
            failed.append(KattnError(f"failed with exit code {code}: {_typed(commands[number])}"))
        else:
            yield number
    if stopped:
        raise Stopped(f"Stopped; the same command goes on from here: {shlex.join(['kattn', *sys.argv[1:]])}")
    if failed:
        raise failed[0]


def _typed(arguments: Sequence[str]) -> str:
    return shlex.join(["kattn", *arguments])


def _begin(arguments: Sequence[str], jobs: int) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    if jobs > 1:
        environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    return subprocess.Popen([sys.executable, "-m", "kattn_cli", *arguments], env=environment)


def _first_done(at_work: dict[int, subprocess.Popen[bytes]]) -> int:
    while True:
        for number, process in at_work.items():
            try:
                process.wait(_TICK if len(at_work) > 1 else None)
            except subprocess.TimeoutExpired:
                continue
            return number
