"""Where kattn prints: one console, silent under ``--quiet``, its tables and its progress bars."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
"""Prints what it is given: a name may have ``[b]`` or ``:on:`` in it."""
WIDEST = 1000
"""Letters in a line of a table beyond which no table goes."""


def warn(line: str) -> None:
    """Print to stderr what changes what a command does, which ``--quiet`` must not hide."""
    print(line, file=sys.stderr)


def progress_bar(unit: str) -> Progress:
    """Return a bar with a description, free text (``fields[note]``) and the time left (taken, once it is done)."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        TextColumn(f"{unit} {{task.fields[count]}}", markup=False),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[note]}", markup=False),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
        disable=console.quiet,
    )


def print_wide(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that is never wrapped, however narrow the terminal: cut lines would not be read.

    The first column goes to the left, all others to the right.
    """
    table = Table(box=None, padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    table.width = Measurement.get(console, console.options.update(max_width=WIDEST), table).maximum
    console.print(table, crop=False)
