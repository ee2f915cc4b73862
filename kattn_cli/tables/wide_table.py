"""A table on the console that is never wrapped, however narrow the terminal: cut lines would not be read."""

from __future__ import annotations

from collections.abc import Sequence

from rich.measure import Measurement
from rich.table import Table

from kattn_cli.console import console

WIDEST = 1000


def print_wide(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, all others to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    table.width = Measurement.get(console, console.options.update(max_width=WIDEST), table).maximum
    console.print(table, crop=False)
