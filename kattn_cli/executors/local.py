"""Processes of this machine: one for each task, so that one that is killed takes no other with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial, update_wrapper
from itertools import takewhile
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from typing import Any, NamedTuple

from kattn_cli.errors import KattnError, Stopped
from kattn_cli.executors.executor import TICK, Outcome, Request, Work, attempt
from kattn_cli.training.interrupt import Interruption, catch_interruption

VISIBLE = "CUDA_VISIBLE_DEVICES"


class Worker(NamedTuple):
    """One process at work: on which task, and what it will say."""

    task: int
    process: ForkServerProcess
    outcome: Connection


class LocalExecutor:
    """See :class:`~kattn_cli.executors.executor.Executor`. ``request.gpus`` are dealt out in turn."""

    def __init__(self, request: Request) -> None:
        self.jobs = request.jobs
        self.environments = [{VISIBLE: gpus} if gpus else {} for gpus in deal_gpus(request.jobs, request.gpus)]
        self.context = multiprocessing.get_context("forkserver")

    def run(
        self, work: Work, tasks: Iterable[object], interruption: Interruption
    ) -> Iterator[tuple[int, Outcome] | None]:
        """See :meth:`Executor.run`; tasks are drawn when there is room for them.

        What the work needs is imported once, in a process that touches no GPU and that all others are forked from.
        """
        self.context.set_forkserver_preload([work.__module__])
        waiting = enumerate(tasks)
        slots: list[Worker | None] = [None] * self.jobs
        try:
            while True:
                for slot, worker in enumerate(slots):
                    if worker is None and interruption.signal is None and (following := next(waiting, None)):
                        slots[slot] = self._begin(work, *following, slot)
                if not (at_work := [worker for worker in slots if worker]):
                    return
                if interruption.signal is not None:
                    _ask_to_stop(at_work)
                ready = wait([worker.outcome for worker in at_work], TICK)
                for slot, worker in enumerate(slots):
                    if worker and worker.outcome in ready:
                        slots[slot] = None
                        outcome = _outcome(worker)
                        if outcome or interruption.signal is None:
                            yield worker.task, outcome or Outcome(error=_death(worker))
                if not ready:
                    yield None
        finally:
            for worker in slots:
                if worker:
                    worker.process.terminate()
            for worker in slots:
                if worker:
                    worker.process.join()

    def _begin(self, work: Work, number: int, task: object, slot: int) -> Worker:
        ours, theirs = self.context.Pipe(duplex=False)
        process = self.context.Process(target=_work, args=(work, task, theirs, self.environments[slot]))
        process.start()
        theirs.close()
        return Worker(number, process, ours)


def in_parallel(work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[Any]:
    """Yield ``work(*task)`` of each task, done in ``jobs`` processes that share the cores, as the results come.

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
                interruption.signal = interruption.signal or signal.SIGINT
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
    """Return the threads of each of so many processes that share the cores."""
    import torch

    return max(1, torch.get_num_threads() // jobs)


def _with_threads(work: Callable[..., Any], threads: int, task: tuple[Any, ...]) -> Any:
    import torch

    torch.set_num_threads(threads)
    return work(*task)


def deal_gpus(jobs: int, gpus: int) -> list[str]:
    """Return the GPUs of each of ``jobs`` places, as ``CUDA_VISIBLE_DEVICES`` takes them; empty where all see all.

    Raises:
        KattnError: if one place asks for more than there are.
    """
    if not gpus:
        return [""] * jobs
    visible = _visible_gpus()
    if gpus > len(visible):
        raise KattnError(f"--gpus {gpus}: this machine has {len(visible)} that can be seen")
    return [
        ",".join(visible[(place * gpus + number) % len(visible)] for number in range(gpus)) for place in range(jobs)
    ]


def _visible_gpus() -> list[str]:
    if named := os.environ.get(VISIBLE):
        return named.split(",")
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]


def _outcome(worker: Worker) -> Outcome | None:
    """Return what a process said, or None where it died before it could."""
    try:
        outcome: Outcome | None = worker.outcome.recv()
    except EOFError:
        outcome = None
    worker.outcome.close()
    worker.process.join()
    return outcome


def _death(worker: Worker) -> KattnError:
    code = worker.process.exitcode or 0
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return KattnError(f"its process {how}")


def _ask_to_stop(at_work: Iterable[Worker]) -> None:
    """Pass Ctrl-C on; this is done again and again, since a process hears it only while it trains."""
    for worker in at_work:
        if worker.process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(worker.process.pid, signal.SIGINT)


def _work(work: Work, task: object, outcome: Connection, environment: dict[str, str]) -> None:
    """Do the work in a process that hears Ctrl-C only while it trains, and does not outlive its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    done = attempt(work, task)
    with suppress(BrokenPipeError):
        outcome.send(done)


def _end_with_parent() -> None:
    """Stop as after Ctrl-C, the step done and the state kept, once the parent is gone, however it went."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
