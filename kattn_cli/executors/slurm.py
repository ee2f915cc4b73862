"""SLURM, through submitit. Jobs outlive the process that submitted them; preempted or out of time, they are requeued.

``cluster: local`` among the settings runs submitit's jobs as processes of this machine, to try a sweep without SLURM.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any

from kattn_cli.errors import KattnError, Stopped, did_you_mean
from kattn_cli.executors.executor import TICK, Outcome, Request, Work, attempt, optional
from kattn_cli.training.interrupt import Interruption

CLUSTERS = ("slurm", "local")
TIME_MINUTES = 240
"""Of a job, unless the settings say otherwise. One that needs more is requeued and goes on."""
REQUEUED_AT_MOST = 1000
GRACE_SECONDS = 600.0
"""How long a job that was asked to end waits to be ended or requeued."""
STOPPING_SECONDS = 60.0
"""For the step in hand and the checkpoint, after which SLURM ends the job."""


class SlurmExecutor:
    """See :class:`~kattn_cli.executors.executor.Executor`. ``request.settings``: parameters by submitit's names.

    Raises:
        KattnError: if submitit is not installed, or does not know a parameter.
    """

    def __init__(self, request: Request) -> None:
        submitit = optional("submitit", "--on slurm", "slurm")
        logging.getLogger("submitit").setLevel(logging.ERROR)
        settings = dict(request.settings)
        cluster = settings.pop("cluster", "slurm")
        if cluster not in CLUSTERS:
            raise KattnError(f"--set cluster={cluster}: expected one of {', '.join(CLUSTERS)}")
        self.request, self.submitit, self.local = request, submitit, cluster == "local"
        try:
            self.executor = submitit.AutoExecutor(
                request.folder, cluster=cluster, slurm_max_num_timeout=REQUEUED_AT_MOST
            )
        except RuntimeError:
            raise KattnError("--on slurm: this machine has no srun; run it where sbatch works") from None
        shared = set(self.executor._valid_parameters())
        own = set(submitit.SlurmExecutor._valid_parameters())
        for name in settings:
            if name not in shared | own:
                raise KattnError(f"--set {name}: submitit has no such parameter{did_you_mean(name, shared | own)}")
        asked = {name if name in shared else f"slurm_{name}": value for name, value in settings.items()}
        given = {
            "name": "kattn",
            "timeout_min": 10**6 if self.local else TIME_MINUTES,
            "cpus_per_task": request.cpus,
            "gpus_per_node": request.gpus or None,
            "slurm_array_parallelism": request.jobs,
        }
        try:
            self.executor.update_parameters(**{**given, **asked})
        except (AssertionError, ValueError, NameError) as error:
            raise KattnError(f"--set: {' '.join(str(error).split())}") from None

    def run(self, work: Work, tasks: Iterable[Any], interruption: Interruption) -> Iterator[tuple[int, Outcome] | None]:
        """See :meth:`Executor.run`. SLURM is given all tasks at once, as an array that keeps to ``request.jobs``."""
        waiting = enumerate(tasks)
        at_work: dict[int, Any] = {}
        until: float | None = None
        while True:
            if interruption.signal is None:
                room = self.request.jobs - len(at_work) if self.local else None
                at_work |= self._submit(work, dict(islice(waiting, room)))
            elif until is None:
                until = time.monotonic() + STOPPING_SECONDS
                self._ask_to_stop(at_work)
            if not at_work:
                return
            if until is not None and time.monotonic() > until:
                for job in at_work.values():
                    job.cancel(check=False)
                return
            over = [number for number, job in at_work.items() if job.paths.result_pickle.exists() or job.done()]
            for number in over:
                outcome = self._outcome(at_work.pop(number), stopping=until is not None)
                if outcome:
                    yield number, outcome
            if not over:
                yield None
                time.sleep(TICK)

    def _submit(self, work: Work, tasks: Mapping[int, Any]) -> dict[int, Any]:
        if not tasks:
            return {}
        try:
            with self.executor.batch():
                jobs = {number: self.executor.submit(Requeued(), work, task) for number, task in tasks.items()}
        except (OSError, subprocess.CalledProcessError, self.submitit.core.utils.FailedJobError) as error:
            raise KattnError(f"--on slurm: sbatch refused: {' '.join(str(error).split())}") from None
        return jobs

    def _ask_to_stop(self, at_work: Mapping[int, Any]) -> None:
        if self.local:
            for job in at_work.values():
                job.cancel(check=False)
        elif names := [job.job_id for job in at_work.values()]:
            for option in ("--state=PENDING", "--signal=INT"):
                subprocess.run(["scancel", "--quiet", option, *names], check=False)

    def _outcome(self, job: Any, *, stopping: bool) -> Outcome | None:
        """Return what became of a job, or None where it was stopped before it could say anything."""
        if stopping and not job.paths.result_pickle.exists():
            return None
        failure = job.exception()
        if failure is None:
            outcome: Outcome = job.result()
            return outcome
        lines = str(failure).strip().splitlines()
        return Outcome(error=KattnError(f"job {job.job_id}: {lines[0]} … {lines[-1]}; see {job.paths.stderr}"))


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
