"""Several independent trainings at once, on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, update_wrapper
from itertools import takewhile
from signal import SIGINT
from typing import Any

import torch

from kattn_cli.errors import Stopped
from kattn_cli.executors.executor import Outcome, Request
from kattn_cli.executors.local import LocalExecutor
from kattn_cli.training.interrupt import catch_interruption


def in_parallel(work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[Any]:
    """``work(*task)`` for each task in ``jobs`` processes that share the cores; results as they come.

    After a first failure nothing more is begun, and it is raised when what was at work is done. Ctrl-C and SIGTERM are
    passed on: each process finishes its step and keeps its state.

    Raises:
        Stopped: after Ctrl-C, with what each process kept.
    """
    failures: list[Outcome] = []
    kept: list[str] = []
    begun = 0
    alone = update_wrapper(partial(_with_threads, work, threads_each(jobs)), work)
    with catch_interruption() as interruption:
        wanted = takewhile(lambda _: not failures, tasks)
        for event in LocalExecutor(Request(jobs=jobs)).run(alone, wanted, interruption):
            if event is None:
                continue
            begun += 1
            _, outcome = event
            if isinstance(outcome.error, Stopped):
                interruption.signal = interruption.signal or SIGINT
                kept.append(str(outcome.error))
            elif outcome.reason:
                failures.append(outcome)
            else:
                yield outcome.value
    if failures:
        raise failures[0].error or RuntimeError(f"in another process:\n{failures[0].traceback}")
    if interruption.signal is not None:
        if waiting := len(tasks) - begun:
            kept.append(f"{waiting} runs were not begun; the same command with --resume begins them.")
        raise Stopped("\n".join(kept), 128 + interruption.signal)


def threads_each(jobs: int) -> int:
    """The threads of each of so many processes that share the cores."""
    return max(1, torch.get_num_threads() // jobs)


def _with_threads(work: Callable[..., Any], threads: int, task: tuple[Any, ...]) -> Any:
    torch.set_num_threads(threads)
    return work(*task)
