"""What became of each point of a sweep, as the run folders show it, and the table that keeps it: ``sweep.csv``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from kattn_cli.errors import RunError
from kattn_cli.experiment.resume import find_same
from kattn_cli.recipe.sweep import Point, spelled
from kattn_cli.runs.csv_rows import read_rows, write_rows
from kattn_cli.runs.find import all_runs
from kattn_cli.runs.run import RECIPE, Run
from kattn_cli.tables.measures import Measure, chosen_on, last_epoch
from kattn_cli.tasks import task_of

SWEEP_CSV = "sweep.csv"
METRICS_CSV = "metrics.csv"
Status = Literal["finished", "running", "interrupted", "failed", "waiting"]


@dataclass(eq=False)
class State:
    """One point and how it stands. ``settled``: in this session nothing more will become of it."""

    point: Point
    status: Status = "waiting"
    run: Run | None = None
    reason: str = ""
    settled: bool = False

    @property
    def best(self) -> tuple[str, str, float] | None:
        """Return, of its finished run, the split, the metric and the value that the best epoch was chosen by."""
        if self.run is None or self.status != "finished":
            return None
        done = self.run.manifest
        return chosen_on(done), self.measure.name, float(done[f"best_validation_{self.measure.name}"])

    @property
    def measure(self) -> Measure:
        """Return what its best epoch is chosen by."""
        return task_of(self.point.recipe).measure

    @property
    def epochs(self) -> int:
        """Return how many epochs its recipe has."""
        return self.point.recipe.train.epochs

    def progress(self) -> tuple[int, str]:
        """Return the epochs done, and what the last one was worth on the split that the best is chosen on."""
        try:
            rows = read_rows(self.run.folder / METRICS_CSV) if self.run else []
        except RunError:
            rows = []
        return last_epoch(rows, self.measure)


def counted(states: Sequence[State]) -> str:
    """Return such as ``3 finished, 2 running, 7 waiting``."""
    counts = Counter(state.status for state in states)
    return ", ".join(f"{counts[status]} {status}" for status in get_args(Status) if counts[status])


@dataclass
class Record:
    """All points of the sweep of one recipe; ``results`` as the user named it."""

    results: Path
    points: Sequence[Point]
    states: list[State] = field(init=False)
    _written: list[dict[str, Any]] = field(init=False, default_factory=list)
    _texts: dict[Path, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.states = [State(point) for point in self.points]
        runs: dict[int, list[Run]] = {}
        for run in all_runs(self.folder) if self.folder.is_dir() else []:
            runs.setdefault(run.seed, []).append(run)
        for state in self.states:
            if found := find_same(state.point.recipe, runs.get(state.point.recipe.seed, [])):
                state.run, state.settled = found.run, found.done
                state.status = "finished" if found.done else "waiting"

    @property
    def folder(self) -> Path:
        """Return where the runs of the recipe lie."""
        return self.results / self.points[0].recipe.name

    @property
    def keys(self) -> list[str]:
        """Return the swept keys, without ``seed``."""
        return list(dict.fromkeys(key for point in self.points for key in point.settings))

    def look(self) -> list[State]:
        """Look at the folders of the points that are not settled; return those whose status is another now."""
        changed = []
        for state in self.states:
            if state.settled:
                continue
            state.run = state.run or self._run_of(state.point)
            begun = state.run is not None and state.run.status in ("running", "finished")
            now: Status = "running" if begun else "waiting"
            if now != state.status:
                state.status = now
                changed.append(state)
        return changed

    def settle(self, state: State, status: Status, reason: str = "", run: Path | None = None) -> None:
        """Write the end of one point."""
        state.run = Run(self.folder / run.name) if run else state.run or self._run_of(state.point)
        state.status, state.reason, state.settled = status, reason, True

    def leave(self) -> None:
        """Mark at the end of the session what has begun and is not done as interrupted."""
        for state in self.states:
            if not state.settled:
                state.run = state.run or self._run_of(state.point)
                state.status = "interrupted" if state.run else "waiting"

    def write(self) -> None:
        """Write ``sweep.csv`` whole, if anything in it is new.

        Raises:
            RunError: if it cannot be written.
        """
        rows = [self._row(state) for state in self.states]
        if rows != self._written:
            write_rows(self.folder / SWEEP_CSV, rows)
            self._written = rows

    def _row(self, state: State) -> dict[str, Any]:
        settings = {key: spelled(value) for key, value in state.point.settings.items()}
        split, metric, value = state.best or ("", "", "")
        seconds = state.run.manifest.get("train_seconds", "") if state.run and state.status == "finished" else ""
        return {
            "point": state.point.number,
            **{key: settings.get(key, "") for key in self.keys},
            "seed": state.point.recipe.seed,
            "status": state.status,
            "run": str(state.run.folder) if state.run else "",
            "reason": state.reason,
            "seconds": seconds,
            "split": split,
            "metric": metric,
            "value": value,
        }

    def _run_of(self, point: Point) -> Run | None:
        """Return the run that a worker has begun for a point, by its recipe."""
        own = re.compile(rf"{point.recipe.seed}(-\d+)?")
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            if own.fullmatch(folder.name) and self._text(folder) == point.recipe.to_yaml():
                return Run(folder)
        return None

    def _text(self, folder: Path) -> str:
        if folder not in self._texts:
            try:
                self._texts[folder] = (folder / RECIPE).read_text(encoding="utf-8")
            except OSError:
                return ""
        return self._texts[folder]
