"""``kattn complexity``: time, memory and operations of each mechanism as the sequence grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from kattn_cli.commands.complexity.grid import Competitor, Grid, Setting
from kattn_cli.commands.complexity.row import FAILED, OK, Bounds, outcome
from kattn_cli.console import progress_bar
from kattn_cli.costs.flops import Count
from kattn_cli.costs.timing import Cost, Pass
from kattn_cli.device import device_name
from kattn_cli.runs.cost_table import CostTable
from kattn_cli.runs.provenance import provenance
from kattn_cli.tables.complexity import shown

FOLDER = "complexity"
KEYS = ("attention", "version", "pass", "dtype", "causal", "dim", "heads", "batch", "n")
"""What tells a row apart."""


def measure_complexity(
    chosen: Sequence[Competitor],
    grid: Grid,
    bounds: Bounds,
    *,
    results: Path,
    device: torch.device,
    resume: bool = False,
) -> Path:
    """Measure each mechanism in every combination of the grid, a row each; returns the CSV.

    A size that does not fit in memory, or takes too long, gets a row that says so, and larger ones of that mechanism
    are not tried; nor is what has no causal form. A mechanism that raises an error gets a row with it, and the rest
    goes on. With ``resume``, rows that are there are kept, but for those that failed.
    """
    series = [(one, setting, what) for setting in grid.settings() for one in chosen for what in grid.passes]
    record, settings = provenance(device_name(device)), _settings(chosen, grid, bounds)
    table = CostTable.open(results / FOLDER, device.type, settings, record, KEYS, resume)
    with table, progress_bar("row") as bar:
        total = len(series) * len(grid.lengths)
        task = bar.add_task("complexity", total=total, count="", note="")
        for one, setting, what in series:
            status = OK
            for n in sorted(grid.lengths):
                bar.update(task, note=f"{shown(one.label, one.version)} {what} C = {setting.dim:,} N = {n:,}")
                key = _key(one, setting, what, n)
                there = table.has(**key)
                if there and not there["status"].startswith(FAILED):
                    status = there["status"]
                else:
                    found = outcome(one, setting, what, n, bounds, device, before=status)
                    status = found.status
                    columns = {**_of_count(found.counted, setting.batch), **_of_cost(found.cost), "status": status}
                    table.append({**key, "options": one.options, "device": device.type, **columns})
                done = bar.tasks[0].completed + 1
                bar.update(task, completed=done, count=f"{int(done)}/{total}")
    return table.path


def _settings(chosen: Sequence[Competitor], grid: Grid, bounds: Bounds) -> dict[str, Any]:
    mechanisms = [[one.label, one.version, {"name": one.mechanism.name, **one.mechanism.options}] for one in chosen]
    sizes = {**asdict(grid), "dtypes": [_name(dtype) for dtype in grid.dtypes]}
    return {"mechanisms": mechanisms, **sizes, **asdict(bounds), "threads": torch.get_num_threads()}


def _key(one: Competitor, setting: Setting, what: Pass, n: int) -> dict[str, Any]:
    """The columns :data:`KEYS`."""
    return {
        "attention": one.label,
        "version": one.version,
        "pass": what,
        "dtype": _name(setting.dtype),
        "causal": "yes" if setting.causal else "no",
        "dim": setting.dim,
        "heads": setting.heads,
        "batch": setting.batch,
        "n": n,
    }


def _of_cost(cost: Cost | None) -> dict[str, Any]:
    return {
        "milliseconds": cost and round(cost.milliseconds, 4),
        "spread": cost and round(cost.spread, 4),
        "repeats": cost and cost.repeats,
        "peak_mib": cost and round(cost.peak_mib, 6),
    }


def _of_count(count: Count | None, batch: int) -> dict[str, Any]:
    return {
        "forward_flops": count and count.flops * batch,
        "flops_counted": count and count.how,
        "matrix_product_flops": count and count.matrix_products * batch,
        "not_counted": count and " ".join(count.not_counted),
        "parameters": count and count.parameters,
    }


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
