"""What a sweep shows: while it runs the points at work, at the end the settings by what they were worth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kattn_cli.commands.sweep.record import Record, State, counted
from kattn_cli.console import console
from kattn_cli.recipe.schema import flat
from kattn_cli.recipe.sweep import spelled
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.tables.measures import best_epoch
from kattn_cli.tables.text import mean_and_half

SHOWN = 16
"""Running points that the live table has room for."""


class SweepView:
    """A table that is redrawn on a terminal; elsewhere one line for each change."""

    def __init__(self, states: Sequence[State]) -> None:
        self.states = states
        self.started, self.done_before = time.monotonic(), self._done()
        self.live = Live(get_renderable=self._table, console=console, refresh_per_second=2, transient=True)

    def __enter__(self) -> SweepView:
        if console.is_terminal and not console.quiet:
            self.live.start()
        else:
            console.print(f"{len(self.states)} points: {counted(self.states)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.live.stop()

    def changed(self, state: State) -> None:
        """Show that a point's status is another now."""
        if self.live.is_started:
            return
        message = f"{state.status}: {state.reason}" if state.reason else state.status
        if state.run and (best := _best(state)):
            message = f"{message}, {best}, {state.run.manifest['train_seconds']:.0f} s"
        console.print(f"{state.point.number}/{len(self.states)} {state.point}: {message}")

    def _table(self) -> RenderableType:
        running = [state for state in self.states if state.status == "running"]
        table = Table(box=None, padding=(0, 3, 0, 0))
        for heading in ("running", "epoch", "last", "run"):
            table.add_column(heading, no_wrap=heading != "running", header_style="dim")
        for state in running[:SHOWN]:
            epochs, value = state.progress()
            folder = str(state.run.folder) if state.run else ""
            table.add_row(*map(Text, (str(state.point), f"{epochs}/{state.epochs}", value, folder)))
        more = f", {len(running) - SHOWN} of the running ones not shown" if len(running) > SHOWN else ""
        return Group(*([table] if running else []), Text(f"{counted(self.states)}{more}{self._time_left()}"))

    def _done(self) -> float:
        """Return how much is done, in points; of one at work the share of its epochs."""
        return sum(
            1.0 if state.settled else state.progress()[0] / state.epochs if state.run else 0.0 for state in self.states
        )

    def _time_left(self) -> str:
        done, taken = self._done(), time.monotonic() - self.started
        if done <= self.done_before:
            return ""
        left = taken * (len(self.states) - done) / (done - self.done_before)
        return f"; about {timedelta(seconds=round(left))} left"


def ranking(record: Record) -> Table:
    """Return the settings of a sweep, the best first, each with what its best epochs were worth over the seeds."""
    found: dict[tuple[str, ...], list[float]] = {}
    measure, split = record.states[0].measure, "validation"
    for state in record.states:
        if best := state.best:
            split = best[0]
            values = [spelled(state.point.settings[key]) if key in state.point.settings else "" for key in record.keys]
            found.setdefault(tuple(values), []).append(best[2])
    table = Table(box=None, padding=(0, 3, 0, 0))
    value = f"{split} {measure.heading}"
    for heading in (*record.keys, value, "seeds"):
        table.add_column(heading, overflow="fold", justify="right" if heading in (value, "seeds") else "left")
    for settings, measured in sorted(found.items(), key=lambda one: measure.merit(_mean(one[1])), reverse=True):
        mean, half = mean_interval(measured)
        worth = mean_and_half(mean, half, measure.decimals)
        table.add_row(*map(Text, (*settings, worth, str(len(measured)))))
    return table


def points_table(record: Record) -> Table:
    """Return every point with the keys in which the recipes differ, and what there is of it already."""
    recipes = [flat(state.point.recipe.model_dump()) for state in record.states]
    known = dict.fromkeys(key for recipe in recipes for key in recipe)
    keys = [key for key in known if len({repr(recipe.get(key)) for recipe in recipes}) > 1]
    table = Table(box=None, padding=(0, 3, 0, 0))
    for heading in ("point", *keys, "there is"):
        table.add_column(heading, overflow="fold")
    for state, recipe in zip(record.states, recipes, strict=True):
        there = f"{state.run.folder}: {state.run.status}" if state.run else "nothing yet"
        values = (spelled(recipe[key]) if key in recipe else "" for key in keys)
        table.add_row(*map(Text, (str(state.point.number), *values, there)))
    return table


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _best(state: State) -> str:
    return best_epoch(state.run) if state.run and state.status == "finished" else ""
