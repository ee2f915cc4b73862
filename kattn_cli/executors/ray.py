"""A Ray cluster: the one that runs already, or else one of this machine alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kattn_cli.errors import KattnError
from kattn_cli.executors.executor import TICK, Outcome, Request, Work, attempt, optional
from kattn_cli.training.interrupt import Interruption

OBJECT_STORE = 100 * 2**20
"""Bytes: what travels are settings and names, no arrays."""


class RayExecutor:
    """See :class:`~kattn_cli.executors.executor.Executor`. ``request.address``: as ``ray.init`` takes it."""

    def __init__(self, request: Request) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self.ray = optional("ray", "--on ray", "ray")
        self.request = request

    def run(self, work: Work, tasks: Iterable[Any], interruption: Interruption) -> Iterator[tuple[int, Outcome] | None]:
        """See :meth:`Executor.run`."""
        ray, request = self.ray, self.request
        waiting = enumerate(tasks)
        at_work: dict[Any, int] = {}
        with self._connected():
            remote = ray.remote(num_cpus=request.cpus, num_gpus=request.gpus, max_retries=0)(attempt)
            while True:
                while (
                    len(at_work) < request.jobs and interruption.signal is None and (following := next(waiting, None))
                ):
                    number, task = following
                    at_work[remote.remote(work, task)] = number
                if not at_work:
                    return
                if interruption.signal is not None:
                    for reference in at_work:
                        ray.cancel(reference)
                done, _ = ray.wait(list(at_work), timeout=TICK)
                for reference in done:
                    outcome = self._outcome(reference)
                    number = at_work.pop(reference)
                    if outcome:
                        yield number, outcome
                if not done:
                    yield None

    def _outcome(self, reference: Any) -> Outcome | None:
        """Return what became of a task, or None where it was taken back before it began."""
        try:
            outcome: Outcome = self.ray.get(reference)
        except self.ray.exceptions.TaskCancelledError:
            return None
        except self.ray.exceptions.RayError as error:
            return Outcome(error=KattnError(f"Ray: {' '.join(str(error).split())[:300]}"))
        return outcome

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Connect to Ray while inside. It takes SIGTERM for itself when it begins; we take it back."""
        ray, request = self.ray, self.request
        before = signal.getsignal(signal.SIGTERM)
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        own = {"include_dashboard": False, "object_store_memory": OBJECT_STORE, **quiet}
        try:
            try:
                ray.init(request.address or "auto", **quiet)
            except ConnectionError as error:
                if request.address:
                    raise KattnError(f"--address {request.address}: no Ray cluster answers there: {error}") from None
                ray.init("local", **own)
            signal.signal(signal.SIGTERM, before)
            yield
        finally:
            ray.shutdown()
