"""The moments of a training whose weights can be looked at: the chosen ones, and those kept along the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from rich.progress import Progress, TaskID

from kattn_cli.experiment.loading import OpenRun, open_run
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import KEPT
from kattn_cli.training.checkpoint import kept_epochs, kept_name


class Moment(NamedTuple):
    """A run with the weights it had after ``epoch``."""

    epoch: int
    checkpoint: str
    """``best`` or ``last`` for the chosen weights, ``kept`` for all others."""
    opened: OpenRun

    @property
    def chosen(self) -> bool:
        return self.checkpoint != KEPT


def followed(run: Run, device: torch.device, checkpoint: str, bar: Progress) -> Iterator[tuple[TaskID, Moment]]:
    """:func:`moments_of` a run, each with the task in ``bar`` that counts those done."""
    total = max(1, len(kept_epochs(run.folder)))
    task = bar.add_task(f"{run.label} {run.folder.name}", total=total, count=f"0/{total}", note="")
    for number, moment in enumerate(moments_of(run, device, checkpoint), 1):
        yield task, moment
        total = max(number, total)  # one more where the chosen weights are not among those kept
        bar.update(task, completed=number, total=total, count=f"{number}/{total}", note="")


def moments_of(run: Run, device: torch.device, checkpoint: str) -> Iterator[Moment]:
    """In the order of epochs; the chosen weights once, whether or not they are among those kept.

    Args:
        checkpoint: the chosen ones, ``best`` or ``last``.

    Raises:
        RecipeError, DataError, CheckpointError: as :func:`~kattn_cli.experiment.loading.open_run`.
    """
    chosen = open_run(run, device, checkpoint)
    at = _epoch_of(run, chosen.step)
    kept = [epoch for epoch in kept_epochs(run.folder) if epoch != at]
    for epoch in sorted([*kept, at]):
        if epoch == at:
            yield Moment(epoch, chosen.checkpoint, chosen)
        else:
            yield Moment(epoch, KEPT, open_run(run, device, kept_name(epoch)))


def _epoch_of(run: Run, step: int) -> int:
    """The epoch that ``step`` belongs to, by the run's metrics."""
    ends = {int(row["step"]): int(row["epoch"]) for row in read_rows(run.folder / "metrics.csv")}
    later = [epoch for end, epoch in ends.items() if end >= step]
    return min(later, default=max(ends.values(), default=0) + bool(step))
