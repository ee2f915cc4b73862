"""Work inside a job that submitit requeues when it is preempted or out of time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kattn_cli.errors import Stopped
from kattn_cli.executors.executor import Outcome, Work, attempt, optional

GRACE_SECONDS = 600.0
"""How long a job that was asked to end waits to be ended or requeued."""


class Requeued:
    """Does the work; when submitit's signal comes, it first lets a training finish its step and keep its state.

    SIGTERM alone also stops the training, its state kept, and then the job waits: SLURM sends it before it requeues a
    preempted job by itself, and before it ends one that was cancelled, and only SLURM knows which.
    """

    def __call__(self, work: Work, task: Any) -> Outcome:
        """Return what became of the work, unless the job is requeued meanwhile, which ends the process."""
        environment = optional("submitit", "--on slurm", "slurm").JobEnvironment()
        with _first_keeping(environment._usr_sig()) as requeue:
            outcome = attempt(work, task)
            if isinstance(outcome.error, Stopped):
                requeue()
                if environment.cluster == "slurm" and outcome.error.code == 128 + signal.SIGTERM:
                    time.sleep(GRACE_SECONDS)
        return outcome

    def checkpoint(self, work: Work, task: Any) -> Any:
        """Return what submitit runs when the job comes up again: the same, which resumes."""
        return optional("submitit", "--on slurm", "slurm").helpers.DelayedSubmission(self, work, task)


@contextmanager
def _first_keeping(number: int) -> Iterator[Callable[[], None]]:
    """Let signal ``number`` stop a training first, while inside; yield what then hands it on, if it came."""
    requeueing, idle = signal.getsignal(number), signal.getsignal(signal.SIGTERM)
    asked = False

    def hand_on() -> None:
        if asked and callable(requeueing):
            requeueing(number, None)

    def note(received: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        if signal.getsignal(signal.SIGTERM) == idle:
            hand_on()
        else:
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(number, note)
    try:
        yield hand_on
    finally:
        signal.signal(number, requeueing)
