"""Runs that were trained: found, opened, read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kattn_cli.runs.find import all_runs, find_runs
from kattn_cli.runs.run import Run as RunFolder
from kattn_cli.tables.frames import frame

if TYPE_CHECKING:
    import pandas as pd

    from kattn_cli.models import AttentionModel
    from kattn_cli.training.opened import OpenRun

RESULTS = Path("results")


@dataclass(frozen=True)
class Run(RunFolder):
    """One run's folder, with its recipe, its tables and its model.

    ``folder``: where it lies; ``name``, ``seed``, ``status``, ``manifest``, ``recipe``: as they stand on disk.
    """

    @property
    def metrics(self) -> pd.DataFrame:
        """Return ``metrics.csv``: a row for each epoch and split."""
        return self.table("metrics.csv")

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the run, such as ``eval.csv``; empty where nothing was measured.

        Raises:
            RunError: if it cannot be read.
        """
        return frame([self], name)

    def open(self, checkpoint: str = "best", device: str = "auto") -> OpenRun:
        """Return the run with its recipe, its data and its model.

        Raises:
            KattnError: if the recipe, its data or the weights cannot be used.
        """
        from kattn_cli.device import resolve_device
        from kattn_cli.experiment.run import open_run

        return open_run(self, resolve_device(device), checkpoint)

    def model(self, checkpoint: str = "best", device: str = "auto") -> AttentionModel:
        """Return the trained model in evaluation mode; of images it takes pixels in [0, 1].

        Args:
            checkpoint: ``best``, chosen on validation, or ``last``.
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.

        Raises:
            KattnError: if the recipe, its data or the weights cannot be used.
        """
        return self.open(checkpoint, device).model


def runs(*references: str, results: str | Path = RESULTS) -> list[Run]:
    """Return the runs that are meant, by folder or by name; without a name, all of them, oldest first.

    Raises:
        RunError: if a name means none, with the nearest one.

    >>> kattn.runs("quickstart")[0].metrics
    """
    folder = Path(results)
    return [Run(one.folder) for one in (find_runs(folder, references) if references else all_runs(folder))]


def as_runs(chosen: str | RunFolder | Sequence[str | RunFolder], results: str | Path = RESULTS) -> list[Run]:
    """Return runs that are given as such or by name."""
    several = [chosen] if isinstance(chosen, str | RunFolder) else chosen
    found: list[Run] = []
    for one in several:
        found += [Run(one.folder)] if isinstance(one, RunFolder) else runs(one, results=results)
    return found
