"""What training cost each run: time of a typical epoch, and the most memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import frame


@dataclass(frozen=True)
class TrainingCosts:
    """Of one run: its manifest, its rows of the training split, one an epoch, and its costs by their units.

    ``costs``: ``seconds_per_epoch``, ``seconds_per_1k_steps`` (medians over epochs), ``memory_gb`` (in units of 2³⁰
    bytes; nan where it was not measured).
    """

    folder: str
    manifest: Mapping[str, Any]
    rows: pd.DataFrame
    costs: Mapping[str, float]


def training_costs(runs: Sequence[Run]) -> Iterator[TrainingCosts]:
    """Those of each run that has trained an epoch."""
    manifests = {str(run.folder): run.manifest for run in runs}
    table = frame(runs, "metrics.csv")
    if table.empty:
        return
    for folder, rows in table[table["split"] == "train"].groupby("folder", sort=False):
        manifest = manifests[str(folder)]
        passed = rows[["epoch", "step", "seconds"]].diff().fillna(rows[["epoch", "step", "seconds"]])
        costs = {
            "seconds_per_epoch": (passed["seconds"] / passed["epoch"]).median(),
            "seconds_per_1k_steps": (1000 * passed["seconds"] / passed["step"]).median(),
            "memory_gb": (manifest.get("peak_memory_mib") or float("nan")) / 1024,
        }
        yield TrainingCosts(str(folder), manifest, rows, costs)
