"""Where kattn prints: one console, silent under ``--quiet``, and its progress bars."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def progress_bar(unit: str) -> Progress:
    """A bar with a description, free text (``fields[note]``), time taken and time left."""
    return Progress(
        TextColumn("{task.description}"),
        TextColumn(f"{unit} {{task.fields[count]}}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=console.quiet,
    )
