"""Where kattn prints: one console, silent under ``--quiet``, and its progress bars."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

console = Console(highlight=False, soft_wrap=True)


def progress_bar(unit: str) -> Progress:
    """A bar with a description, free text (``fields[note]``) and the time left (taken, once it is done)."""
    return Progress(
        TextColumn("{task.description}"),
        TextColumn(f"{unit} {{task.fields[count]}}"),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
        disable=console.quiet,
    )
