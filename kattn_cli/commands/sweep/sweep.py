"""``kattn sweep``: the runs of a grid or a list of settings, here or on a cluster, none lost and none twice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kattn_cli.commands.sweep.point import OWN_FILES, PointTask, lock_of, train_point
from kattn_cli.commands.sweep.record import Record, State, counted
from kattn_cli.commands.sweep.view import SweepView
from kattn_cli.errors import KattnError, RecipeError, Stopped
from kattn_cli.executors.executor import TICK, Executor, Outcome
from kattn_cli.experiment import recipes
from kattn_cli.recipe.faults import all_of
from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.sweep import Point
from kattn_cli.runs.lock import Held, holding
from kattn_cli.runs.run import LOCK
from kattn_cli.runs.whole_file import make_folder, write_text
from kattn_cli.training.interrupt import Interruption, catch_interruption


@dataclass(frozen=True)
class Settings:
    """How every point is trained. ``command`` is what the user typed, which goes on after an interruption."""

    overrides: tuple[str, ...]
    device: str
    threads: int
    command: str


def plan(
    references: Sequence[str],
    overrides: Sequence[str],
    over: Sequence[str],
    seeds: Sequence[int],
    results: Path,
    *,
    data: bool = True,
) -> list[Record]:
    """Return the points of all recipes, and the runs that they have already.

    Args:
        data: whether the files of the data sets must be there.

    Raises:
        RecipeError: naming every fault of every point of every recipe.
    """
    points: dict[str, list[Point]] = {}
    errors: list[RecipeError] = []
    for source in [source for reference in references for source in find_recipes(reference)]:
        try:
            swept = recipes.load_sweep(source, overrides, over, seeds, data=data)
        except RecipeError as error:
            errors.append(error)
            continue
        name = swept[0].recipe.name
        if name in points:
            other = f"{source}: has the name {name}, as another recipe of this sweep has; give it another"
            errors.append(RecipeError(other))
        points[name] = swept
    if errors:
        raise all_of(errors)
    return [Record(results, swept) for swept in points.values()]


def sweep(records: Sequence[Record], executor: Executor, settings: Settings) -> None:
    """Train every point that has no finished run, and write down what becomes of each.

    Raises:
        Stopped: after Ctrl-C or SIGTERM, with what was kept and the command that goes on.
        KattnError: if points failed, when all others are done; or another process runs this sweep.
    """
    with ExitStack() as stack:
        for record in records:
            lock = record.folder / OWN_FILES / LOCK
            make_folder(lock.parent)
            stack.enter_context(holding(lock, f"{record.folder}: is being swept"))
        session = _Session(records, settings)
        kept = "each run that was begun is kept at its last step"
        with catch_interruption() as interruption:
            try:
                session.train(executor, interruption)
            except KeyboardInterrupt:
                kept = "each run that was begun is kept at its last checkpoint"
            finally:
                session.leave()
    counts = counted(session.states)
    if interruption.signal is not None:
        again = f"Go on with: {settings.command}"
        raise Stopped(f"Stopped: {counts}; {kept}.\n{again}", 128 + interruption.signal)
    if lost := [state for state in session.states if state.status != "finished"]:
        lines = [f"  {state.point}: {state.status}: {state.reason}" for state in lost]
        head = f"{len(lost)} of {len(session.states)} points have no finished run:"
        raise KattnError("\n".join([head, *lines, f"The same command tries them again: {settings.command}"]))


class _Session:
    """One call of ``kattn sweep``, from which the next one goes on."""

    def __init__(self, records: Sequence[Record], settings: Settings) -> None:
        self.records, self.settings = records, settings
        self.record_of = {state: record for record in records for state in record.states}
        self.states = [state for record in records for state in record.states]
        self.view = SweepView(self.states)

    def train(self, executor: Executor, interruption: Interruption) -> None:
        """Train round after round: a point that another process holds comes up again when that one lets go of it."""
        free, held = [state for state in self.states if not state.settled], list[State]()
        with self.view:
            while free or held:
                held += self._round(executor, free, interruption)
                if interruption.signal is not None:
                    return
                free = [state for state in held if self._is_free(state)]
                held = [state for state in held if state not in free]
                if held and not free:
                    self._look()
                    time.sleep(TICK)

    def leave(self) -> None:
        """Write down how things stand, whatever ended the session."""
        for record in self.records:
            record.leave()
            record.write()

    def _round(self, executor: Executor, states: Sequence[State], interruption: Interruption) -> Iterator[State]:
        """Train ``states``; those that turn out to be in another process's hands come back."""
        tasks = [self._task(state) for state in states]
        self._look()
        for event in executor.run(train_point, tasks, interruption) if tasks else ():
            if event is not None:
                state, outcome = states[event[0]], event[1]
                if isinstance(outcome.error, Held):
                    state.reason = outcome.reason
                    self.view.changed(state)
                    yield state
                else:
                    self._settle(state, outcome)
            self._look()

    def _task(self, state: State) -> PointTask:
        given = self.settings
        results = self.record_of[state].results.resolve()
        return PointTask(state.point, given.overrides, results, given.device, given.threads)

    def _settle(self, state: State, outcome: Outcome) -> None:
        record = self.record_of[state]
        if isinstance(outcome.error, Stopped):
            record.settle(state, "interrupted", outcome.reason)
        elif outcome.reason:
            where = ""
            if outcome.traceback:
                log = lock_of(record.results, state.point.recipe).with_suffix(".log")
                write_text(log, outcome.traceback)
                where = f" (traceback in {log})"
            record.settle(state, "failed", outcome.reason + where)
        else:
            record.settle(state, "finished", run=Path(outcome.value))
        self.view.changed(state)

    def _look(self) -> None:
        for record in self.records:
            for state in record.look():
                self.view.changed(state)
            record.write()

    def _is_free(self, state: State) -> bool:
        locks = [lock_of(self.record_of[state].results, state.point.recipe)]
        locks += [state.run.folder / LOCK] if state.run else []
        try:
            for lock in locks:
                with holding(lock, ""):
                    pass
        except Held:
            return False
        return True
