"""Episodes in the environment that a run's trajectories come from, one for each target return and number."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from typing import Any

from rich.progress import Progress, TaskID

from kattn_cli.console import console, progress_bar
from kattn_cli.data.trajectories import TrajectoryData
from kattn_cli.device import device_name
from kattn_cli.environments.make import make_environments
from kattn_cli.environments.names import normalised_score, target_returns
from kattn_cli.errors import RunError
from kattn_cli.runs.csv_rows import read_rows, replace_rows
from kattn_cli.runs.identity import identity
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run
from kattn_cli.tables.values import ROLLOUTS_CSV
from kattn_cli.tasks.control.episodes import Job, Outcome, rollouts
from kattn_cli.tasks.task import Asked
from kattn_cli.training.opened import OpenRun, reads

AT_ONCE = 20
"""Environments side by side."""


@dataclass(frozen=True)
class Measured:
    """A run and the rows of its episodes that were asked for."""

    run: Run
    rows: Sequence[Mapping[str, Any]]


def measure_rollouts(runs: Sequence[Run], asked: Asked) -> list[Measured]:
    """Run the episodes of each run; rows go to each run's ``rollouts.csv`` as episodes end.

    What was run before with the same weights, targets and seed is taken from there.

    Raises:
        RunError: if a run reads no trajectories, or its data are not of its environment.
        KattnError: if gymnasium is not installed, or has no such environment.
    """
    done = []
    with progress_bar("episode") as bar:
        for run in runs:
            record = provenance(device_name(asked.device))
            subject = _Subject(run, asked)
            fresh = subject.missing()
            if fresh:
                try:
                    subject.measure(fresh, bar)
                finally:
                    run.add_measurement(record)
            done.append(Measured(run, subject.rows()))
    return done


class _Subject:
    """A Decision Transformer and its environment, under measurement."""

    def __init__(self, run: Run, asked: Asked) -> None:
        self.run, self.asked = run, asked
        self.opened: OpenRun = asked.opener.open(run)
        data = self.opened.data
        if not isinstance(data, TrajectoryData):
            raise RunError(f"{run.folder}: {reads(data)}; rollouts and --target-return are for runs on trajectories")
        self.data = data
        targets = asked.target_return or target_returns(data.environment) or (data.best_return,)
        self.jobs = [Job(*one) for one in product(dict.fromkeys(map(float, targets)), range(asked.episodes))]
        self.weights = self.opened.weights
        self.path = run.folder / ROLLOUTS_CSV

    def columns(self, job: Job) -> dict[str, Any]:
        """Return what is measured, of which weights."""
        return {
            "environment": self.data.environment,
            "target_return": job.target_return,
            "episode": job.episode,
            "seed": self.asked.seed,
            "checkpoint": self.opened.checkpoint,
            "step": self.opened.step,
            "weights": self.weights,
        }

    def rows(self) -> list[dict[str, str]]:
        """Return those of the episodes that were asked for, by target and number."""
        known = self._known()
        return [known[key] for job in self.jobs if (key := self._key(job)) in known]

    def missing(self) -> list[Job]:
        """Return the episodes that are left to run."""
        if self.asked.again:
            return self.jobs
        known = self._known()
        return [job for job in self.jobs if self._key(job) not in known]

    def _known(self) -> dict[frozenset[tuple[str, str]], dict[str, str]]:
        return {frozenset(identity(row).items()): row for row in read_rows(self.path)}

    def measure(self, jobs: Sequence[Job], bar: Progress) -> None:
        """Run these episodes, in float64; see :func:`~kattn_cli.tasks.control.episodes.rollouts`."""
        task = bar.add_task(
            f"{self.run.label}/{self.run.folder.name}", total=len(jobs), count=f"0/{len(jobs)}", note=""
        )
        count = min(AT_ONCE, len(jobs))
        with closing(make_environments(self.data.environment, count, workers=self.asked.workers)) as environments:
            self._require_same_sizes(environments)
            speed = _Speed(bar, task)
            for number, outcome in enumerate(self._outcomes(environments, jobs, speed), 1):
                self._write(outcome)
                bar.update(task, completed=number, count=f"{number}/{len(jobs)}")
        longest = max(int(row["length"]) for row in self.rows())
        if longest > self.data.longest:
            console.print(
                f"{self.run.folder}: an episode came to {longest:,} steps, and the longest of its data has "
                f"{self.data.longest:,}; steps beyond share the code of the last"
            )

    def _outcomes(self, environments: Any, jobs: Sequence[Job], speed: _Speed) -> Iterator[Outcome]:
        model: Any = self.opened.model.double()
        context, seed = self.data.context, self.asked.seed
        return rollouts(model, environments, jobs, context=context, seed=seed, on_step=speed)

    def _write(self, outcome: Outcome) -> None:
        score = normalised_score(self.data.environment, outcome.return_)
        row = {
            **self.columns(outcome.job),
            "return": outcome.return_,
            "normalised_score": "" if score is None else score,
            "length": outcome.length,
            "seconds": round(outcome.seconds, 3),
        }
        replace_rows(self.path, [row])  # also what is new: another process may have run the same episode meanwhile

    def _key(self, job: Job) -> frozenset[tuple[str, str]]:
        return frozenset(identity(self.columns(job)).items())

    def _require_same_sizes(self, environments: Any) -> None:
        have = (environments.single_observation_space.shape[0], environments.single_action_space.shape[0])
        wanted = (self.data.states, self.data.actions)
        if have != wanted:
            raise RunError(
                f"{self.run.folder}: its data have states of {wanted[0]} and actions of {wanted[1]} numbers, and "
                f"{self.data.environment} {have[0]} and {have[1]}; give data.environment"
            )


class _Speed:
    """Tells a progress bar how many steps a second all environments make together."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self.bar, self.task = bar, task
        self.steps, self.started = 0, time.perf_counter()

    def __call__(self, running: int) -> None:
        self.steps += running
        rate = self.steps / (time.perf_counter() - self.started)
        self.bar.update(self.task, note=f"{self.steps:,} steps, {rate:,.0f} steps/s")
