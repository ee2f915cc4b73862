"""Run subcommands as processes of their own, which keep their own results."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from kattn_cli.errors import KattnError, Stopped
from kattn_cli.training.interrupt import catch_interruption

_STOPPED = (130, 143, -signal.SIGINT, -signal.SIGTERM)
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

    After a first failure nothing more is begun; what is at work comes to its end. Ctrl-C reaches what is at work from
    the terminal, and SIGTERM is passed on.

    Raises:
        KattnError, Stopped: if one failed, or was stopped, which it has said itself.
    """
    waiting = list(enumerate(commands))[::-1]
    at_work: dict[int, subprocess.Popen[bytes]] = {}
    failed: list[KattnError] = []
    passed_on = False
    with catch_interruption() as interruption:
        while at_work or (waiting and not failed and not interruption.signal):
            while waiting and len(at_work) < jobs and not failed and not interruption.signal:
                number, arguments = waiting.pop()
                at_work[number] = _begin(arguments, jobs)
            if interruption.signal == signal.SIGTERM and not passed_on:  # once: a second one would end steps half done
                passed_on = True
                for process in at_work.values():
                    process.terminate()
            for number in _ended(at_work):
                code = at_work.pop(number).returncode
                if code in _STOPPED:
                    interruption.signal = interruption.signal or signal.SIGINT
                elif code:
                    failed.append(KattnError(f"failed with exit code {code}: {_typed(commands[number])}"))
                else:
                    yield number
    if interruption.signal:
        again = f"Stopped; the same command goes on from here: {shlex.join(['kattn', *sys.argv[1:]])}"
        raise Stopped(again, 128 + interruption.signal)
    if failed:
        raise failed[0]


def _typed(arguments: Sequence[str]) -> str:
    return shlex.join(["kattn", *arguments])


def _begin(arguments: Sequence[str], jobs: int) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    if jobs > 1:
        environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    return subprocess.Popen([sys.executable, "-m", "kattn_cli", *arguments], env=environment)


def _ended(at_work: Mapping[int, subprocess.Popen[bytes]]) -> list[int]:
    """Return which processes have come to their end; after a moment, if none has."""
    with suppress(subprocess.TimeoutExpired):
        next(iter(at_work.values())).wait(_TICK)
    return [number for number, process in at_work.items() if process.poll() is not None]
