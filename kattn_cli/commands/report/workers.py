"""Work done in processes of its own while the report is written; it never imports torch, so that they begin at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from os import cpu_count
from typing import Any

Begin = Callable[..., Callable[[], Any]]


@contextmanager
def workers(count: int) -> Iterator[Begin]:
    """Called with a function and its arguments, it begins; the result is there when what that returns is called.

    ``count``: of how many pieces the work is. One alone, or on one core, is done when its result is asked for.
    """
    most = min(count, cpu_count() or 1)
    if most < 2:
        yield partial
        return
    pool = ProcessPoolExecutor(most, mp_context=get_context("spawn"))
    try:
        yield lambda work, *given: pool.submit(work, *given).result
    finally:
        pool.shutdown(cancel_futures=True)
