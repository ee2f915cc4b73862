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
from kattn_cli.experiment.run import followed
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run
from kattn_cli.training.opened import Moment, as_image_run

FOLDER = "audit"


@dataclass(frozen=True)
class AuditSettings:
    """What all runs are measured with."""

    inputs: int
    seed: int
    permutations: int
    checkpoint: str


def chosen_items(only: Collection[str]) -> dict[str, Item]:
    """Return the items of these names, or all that are measured.

    Raises:
        RunError: for an unknown name, with the nearest.
    """
    measured = {name: item for name, item in ITEMS.items() if item.measure}
    for name in only:
        if name not in measured:
            known = ", ".join(measured)
            raise RunError(f"--only {name}: expected one of {known}{did_you_mean(name, measured)}")
    return {name: item for name, item in measured.items() if not only or name in only}


def audit_runs(
    runs: Sequence[Run], settings: AuditSettings, device: torch.device, only: Collection[str] = ()
) -> dict[Run, list[str]]:
    """Write ``<run>/audit/<item>.csv`` for every item (or those of ``only``) that a run's model has something for.

    Returns the items written for each run. A run's tables are written when all its epochs are measured.
    """
    items = chosen_items(only)
    written = {}
    with progress_bar("weights") as bar:
        for run in runs:
            record = provenance(device_name(device))
            tables: dict[str, list[Any]] = {name: [] for name in items}
            for number, (task, moment) in enumerate(followed(run, device, settings.checkpoint, bar)):
                opened = as_image_run(moment.opened, "kattn audit")
                view = View(
                    model=opened.model.double(),
                    splits=opened.data.splits,
                    epoch=moment.epoch,
                    inputs=settings.inputs,
                    seed=settings.seed,
                    permutations=settings.permutations,
                )
                of_weights = {"checkpoint": moment.checkpoint, "step": opened.step, "weights": opened.weights}
                for name, item in items.items():
                    if _wanted(item, moment, first=number == 0):
                        bar.update(task, note=name)
                        with torch.no_grad():
                            tables[name] += [{**row, **of_weights} for row in item.rows(view)]
            for name, rows in tables.items():
                if rows:
                    write_rows(run.folder / FOLDER / f"{name}.csv", rows)
            run.add_measurement(record)
            written[run] = [name for name, rows in tables.items() if rows]
    return written


def _wanted(item: Item, moment: Moment, *, first: bool) -> bool:
    return moment.chosen or item.when == "every" or (item.when == "ends" and first)
