"""Measure the items of the audit on runs, and write their tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kattn_cli.audit.items import ITEMS, Item
from kattn_cli.audit.view import View
from kattn_cli.console import progress_bar
from kattn_cli.device import device_name
from kattn_cli.errors import RunError, did_you_mean
from kattn_cli.experiment.moments import Moment, followed
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run

FOLDER = "audit"


@dataclass(frozen=True)
class Settings:
    """What all runs are measured with."""

    inputs: int
    seed: int
    permutations: int
    checkpoint: str


def refuse_unknown(items: Collection[str]) -> None:
    """Of ``--only``.

    Raises:
        RunError: with the nearest name.
    """
    for name in items:
        if name not in ITEMS:
            known = ", ".join(ITEMS)
            raise RunError(f"--only {name}: expected one of {known}{did_you_mean(name, ITEMS)}")


def audit_runs(
    runs: Sequence[Run], settings: Settings, device: torch.device, only: Collection[str] = ()
) -> dict[Run, list[str]]:
    """Write ``<run>/audit/<item>.csv`` for every item (or those of ``only``) that a run's model has something for.

    Returns the items written for each run. A run's tables are written when all its epochs are measured.
    """
    items = {name: item for name, item in ITEMS.items() if not only or name in only}
    written = {}
    with progress_bar("weights") as bar:
        for run in runs:
            record = provenance(device_name(device))
            tables: dict[str, list[Any]] = {name: [] for name in items}
            for number, (task, moment) in enumerate(followed(run, device, settings.checkpoint, bar)):
                view = View(moment, settings.inputs, settings.seed, settings.permutations)
                for name, item in items.items():
                    if _wanted(item, moment, first=number == 0):
                        bar.update(task, note=name)
                        with torch.no_grad():
                            tables[name] += [{**row, "checkpoint": moment.checkpoint} for row in item.rows(view)]
            for name, rows in tables.items():
                if rows:
                    (run.folder / FOLDER).mkdir(exist_ok=True)
                    write_rows(run.folder / FOLDER / f"{name}.csv", rows)
            run.add_measurement(record)
            written[run] = [name for name, rows in tables.items() if rows]
    return written


def _wanted(item: Item, moment: Moment, *, first: bool) -> bool:
    return moment.chosen or item.when == "every" or (item.when == "ends" and first)
