"""Several independent trainings at once, on one machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any

import torch

from kattn_cli.errors import Stopped


def in_parallel(work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[Any]:
    """``work(*task)`` for each task in ``jobs`` processes that share the cores; results as they come.

    After a first failure nothing more is begun. Ctrl-C is passed on: each process finishes its step and keeps
    its state.

    Raises:
        Stopped: after Ctrl-C, with what each process kept.
    """
    threads = max(1, torch.get_num_threads() // jobs)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare, initargs=(threads,)) as pool:
        futures = [pool.submit(_work, work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except (KeyboardInterrupt, Stopped):
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if child.pid is not None:
                    os.kill(child.pid, signal.SIGINT)
            raise Stopped("\n".join(_last_words(futures))) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _last_words(futures: Sequence[Future[Any]]) -> Iterator[str]:
    """What the stopped ones say, and how many were never begun."""
    for future in futures:
        if not future.cancelled() and isinstance(future.exception(), Stopped):
            yield str(future.exception())
    if waiting := sum(future.cancelled() for future in futures):
        yield f"{waiting} runs were not begun; the same command with --resume begins them."


def _prepare(threads: int) -> None:
    """A worker hears Ctrl-C only while it trains, when its loop listens; it does not outlive its parent for long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _work(work: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """In a worker: what it is for, after which it does not wait for more from a parent that is gone."""
    try:
        return work(*task)
    finally:
        parent = multiprocessing.parent_process()
        if parent and not parent.is_alive():
            os._exit(1)


def _end_with_parent() -> None:
    """Stop as after Ctrl-C, the step done and the state kept, when the parent is gone however it went."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
