"""Measure the items one after the other, into tables that an interrupted benchmark goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from kattn_cli.commands.benchmark.item import Check, Outcome, Place
from kattn_cli.commands.benchmark.items import ITEMS
from kattn_cli.console import console, print_wide, progress_bar
from kattn_cli.costs.roofline import ceilings
from kattn_cli.device import device_name
from kattn_cli.errors import KattnError, did_you_mean
from kattn_cli.kernels import compile_c as build
from kattn_cli.runs.cost_table import CostTable
from kattn_cli.runs.csv_rows import append_rows, read_rows
from kattn_cli.runs.provenance import provenance

FOLDER = "benchmark"
KEYS = ("item", "quantity", "ours", "against")
SIGNS = {"at least": "≥", "at most": "≤"}
HEADER = ["figure of", "figure", "95 % interval", "bound", "holds"]
MEASURED = ("program", "n", "batch", "round", "milliseconds", "peak_mib", "state_mib")


def run_benchmark(
    chosen: Sequence[str],
    *,
    results: Path,
    device: torch.device,
    dtype: str,
    rounds: int,
    seconds: float,
    resume: bool,
) -> Path:
    """Measure the items and return the path of the table of checks, ``<results>/benchmark/<device>.csv``.

    Every single measurement goes to ``<device>.measured.csv`` beside it. An item that fails says so in a check of
    its own, and the others are measured all the same.

    Raises:
        KattnError: if an item is unknown.
    """
    for name in chosen:
        if name not in ITEMS:
            raise KattnError(f"{name}: expected one of {', '.join(ITEMS)}{did_you_mean(name, ITEMS)}")
    names = list(dict.fromkeys(chosen)) or list(ITEMS)
    settings = {
        "items": names,
        "device": device.type,
        "dtype": dtype,
        "rounds": rounds,
        "seconds": seconds,
        "threads": torch.get_num_threads(),
        "c_kernels": build.available(),
    }
    table = CostTable.open(results / FOLDER, device.type, settings, provenance(device_name(device)), KEYS, resume)
    done = {row["item"] for row in read_rows(table.path)}
    with table, progress_bar("item") as bar:
        task = bar.add_task("benchmark", total=len(names), count="", note="the machine's ceilings")

        def on_turn(program: str) -> None:
            bar.update(task, note=f"{name}: {program}")

        precision: torch.dtype = getattr(torch, dtype)
        limits = ceilings(device, precision, rounds, seconds)
        place = Place(device, precision, limits, rounds, seconds, on_turn)
        for number, name in enumerate(names):
            bar.update(task, completed=number, count=f"{number}/{len(names)}", note=name)
            if name in done:
                continue
            outcome = _outcome(name, place)
            append_rows(table.path.with_suffix(".measured.csv"), _measured(name, outcome, settings))
            for check in outcome.checks:
                table.append({"item": name, **_columns(check), "device": device.type, "dtype": settings["dtype"]})
        bar.update(task, completed=len(names), count=f"{len(names)}/{len(names)}", note="")
    return table.path


def _outcome(name: str, place: Place) -> Outcome:
    try:
        return ITEMS[name](place)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        console.print(f"{name}: failed: {reason}")
        nothing = float("nan")
        failed = Check("failed", "", "", nothing, nothing, nothing, "at least", None, reason)
        return Outcome([], [failed])


def _measured(name: str, outcome: Outcome, settings: dict[str, Any]) -> list[dict[str, Any]]:
    fixed = {"item": name, "device": settings["device"], "dtype": settings["dtype"]}
    return [{**fixed, **{column: row.get(column, "") for column in MEASURED}} for row in outcome.rows]


def _columns(check: Check) -> dict[str, Any]:
    found = check._asdict()
    for column in ("value", "low", "high"):
        found[column] = f"{found[column]:.5g}"
    return {**found, "bound": "" if check.bound is None else f"{check.bound:.5g}", "holds": check.holds}


def print_checks(checks: pd.DataFrame) -> None:
    """Print each value with its interval, the bound, whether it holds, and what it is."""
    rows = []
    for row in checks.fillna({"says": "", "holds": ""}).itertuples():
        interval = "" if row.low == row.high or pd.isna(row.low) else f"{row.low:.3g} to {row.high:.3g}"
        bound = "" if pd.isna(row.bound) else f"{SIGNS[str(row.relation)]} {row.bound:.3g}"
        figure = "" if pd.isna(row.value) else f"{row.value:.3g}"
        rows.append([f"{row.item}: {row.says}", figure, interval, bound, str(row.holds)])
    print_wide(HEADER, rows)
