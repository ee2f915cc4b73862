"""Measure time, memory and operations of each mechanism as the sequence grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from kattn_cli.attention import attention_class
from kattn_cli.attention.options import build_attention
from kattn_cli.attention.user_file import one_line
from kattn_cli.commands.complexity.grid import Competitor, Grid, Setting
from kattn_cli.console import console, print_wide, progress_bar
from kattn_cli.costs.flops import Count, count_flops, count_without_running
from kattn_cli.costs.memory import bounded_memory
from kattn_cli.costs.timing import Cost, OutOfMemory, Pass, TooSlow, measure
from kattn_cli.device import device_name
from kattn_cli.errors import RecipeError
from kattn_cli.figures.complexity import draw_complexity
from kattn_cli.kernels.choice import operators
from kattn_cli.runs.cost_table import CostTable
from kattn_cli.runs.csv_rows import read_frame
from kattn_cli.runs.provenance import provenance
from kattn_cli.tables.complexity import completed, exponents, not_counted, options_lines, shortfalls, shown, summary
from kattn_cli.tables.text import write_frame
from kattn_cli.training.seed import Stream, seed_torch

FOLDER = "complexity"
KEYS = ("attention", "version", "pass", "dtype", "causal", "dim", "heads", "batch", "n")
"""What tells a row apart."""
OK, NOT_CAUSAL, FAILED, MEMORY, SLOW = "ok", "no causal form", "failed", "out of memory", "over "
SMALLER = " at a smaller size"
LEFT_OUT = (
    "Operations of a forward pass, all samples. torch's counter sees matrix products; biases and what is listed count "
    "0 there. Formulas count all that is calculated, and leave out memory moves, indices and random draws."
)


@dataclass(frozen=True)
class Bounds:
    """What a row may take: at least ``seconds`` of repeats, ``longest`` seconds a call, ``memory`` bytes on a CPU."""

    seconds: float
    longest: float
    memory: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a row: ``status`` is ``ok`` or why there is no ``cost``; what does not fit is ``counted``, too."""

    status: str
    counted: Count | None = None
    cost: Cost | None = None


def measure_complexity(
    chosen: Sequence[Competitor],
    grid: Grid,
    bounds: Bounds,
    *,
    results: Path,
    device: torch.device,
    resume: bool = False,
) -> Path:
    """Measure each mechanism in every combination of the grid, a row each, and return the path of the CSV.

    A size that does not fit in memory, or takes too long, gets a row that says so, and larger ones of that mechanism
    are not tried; nor is what has no causal form. A mechanism that raises an error gets a row with it, and the others
    are measured all the same. With ``resume``, only rows that are missing or failed are measured.
    """
    series = [(one, setting, what) for setting in grid.settings() for one in chosen for what in grid.passes]
    mechanisms = [[one.label, one.version, {"name": one.mechanism.name, **one.mechanism.options}] for one in chosen]
    settings = {"mechanisms": mechanisms, **asdict(grid), **asdict(bounds), "threads": torch.get_num_threads()}
    record = provenance(device_name(device))
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
                    columns = {**_count_columns(found.counted, setting.batch), **_cost_columns(found.cost)}
                    row = {**key, "options": one.options, "device": device.type, **columns, "status": status}
                    table.append(row)
                done = bar.tasks[0].completed + 1
                bar.update(task, completed=done, count=f"{int(done)}/{total}")
    return table.path


def outcome(
    one: Competitor, setting: Setting, what: Pass, n: int, bounds: Bounds, device: torch.device, before: str = OK
) -> Outcome:
    """Count and measure a mechanism at one size; every error that it raises becomes a status.

    Args:
        before: the status of the next smaller size.
    """
    name, options = one.mechanism.name, one.mechanism.options
    if setting.causal and not getattr(attention_class(name), "supports_causal", False):
        return Outcome(NOT_CAUSAL)
    build = partial(
        build_attention, name, options, dim=setting.dim, heads=setting.heads, seq_len=n, causal=setting.causal
    )
    counted = count_without_running(build, n, setting.dim)
    if before.startswith((MEMORY, SLOW)):
        return Outcome(before.removesuffix(SMALLER) + SMALLER, counted)
    try:
        module, x = _module_and_input(build, setting, n, device)
        # The bound sees what the system grants, not what was freed and is used again. An output is as large as x.
        if bounds.memory and device.type == "cpu" and x.nbytes > bounds.memory:
            raise OutOfMemory
        with operators(one.version):
            cost = measure(module, x, what, bounds.seconds, bounds.memory, bounds.longest)
        return Outcome(OK, counted or _counted_by_running(module, n, setting.dim, device, bounds.memory), cost)
    except (OutOfMemory, MemoryError, torch.OutOfMemoryError):
        return Outcome(MEMORY, counted)
    except TooSlow:
        return Outcome(f"{SLOW}{bounds.longest:g} s a call", counted)
    except RecipeError as error:
        reason = str(error).removeprefix(f"attention {name}: ")
        return Outcome(f"{NOT_CAUSAL if setting.causal else FAILED}: {reason}", counted)
    except Exception as error:
        return Outcome(f"{FAILED}: {one_line(error)}", counted)


def _module_and_input(
    build: Callable[[], nn.Module], setting: Setting, n: int, device: torch.device
) -> tuple[nn.Module, Tensor]:
    seed_torch(0, Stream.COMPLEXITY, n)
    dtype: torch.dtype = getattr(torch, setting.dtype)
    module = build().to(device, dtype)
    return module, torch.randn(setting.batch, n, setting.dim, dtype=dtype).to(device)


def _counted_by_running(module: nn.Module, n: int, dim: int, device: torch.device, memory: int | None) -> Count | None:
    """Count a user's own mechanism that does not run on the meta device; None where it does not fit."""
    with suppress(RuntimeError, MemoryError), bounded_memory(device, memory):
        return count_flops(module, n, dim)
    return None


def _key(one: Competitor, setting: Setting, what: Pass, n: int) -> dict[str, Any]:
    """Return the columns :data:`KEYS`."""
    return {
        "attention": one.label,
        "version": one.version,
        "pass": what,
        "dtype": setting.dtype,
        "causal": "yes" if setting.causal else "no",
        "dim": setting.dim,
        "heads": setting.heads,
        "batch": setting.batch,
        "n": n,
    }


def _cost_columns(cost: Cost | None) -> dict[str, Any]:
    return {
        "milliseconds": cost and round(cost.milliseconds, 4),
        "spread": cost and round(cost.spread, 4),
        "repeats": cost and cost.repeats,
        "peak_mib": cost and round(cost.peak_mib, 6),
    }


def _count_columns(count: Count | None, batch: int) -> dict[str, Any]:
    return {
        "forward_flops": count and count.flops * batch,
        "flops_counted": count and count.how,
        "matrix_product_flops": count and count.matrix_products * batch,
        "not_counted": count and " ".join(count.not_counted),
        "parameters": count and count.parameters,
    }


def print_and_draw(path: Path, fit_from: int | None = None) -> None:
    """Print what was measured at the largest sizes, the exponents, and what was not counted; draw the figures.

    The exponents go to ``<table>.exponents.csv``. A table of one size has neither them nor figures.
    """
    costs = read_frame(path, "complexity")
    fitted = exponents(costs, fit_from)
    for line in options_lines(completed(costs)):
        console.print(line)
    _print_table(summary(costs, fitted))
    for line in shortfalls(costs):
        console.print(line)
    console.print()
    _print_table(not_counted(costs))
    console.print(LEFT_OUT)
    console.print(path)
    done = costs[costs["status"] == "ok"]
    if done["n"].nunique() > 1:
        write_frame(path.with_name(f"{path.stem}.exponents.csv"), fitted)
    if done["n"].nunique() > 1 or done["dim"].nunique() > 1:
        for picture in draw_complexity(costs, path.parent, path.stem, fit_from):
            console.print(picture)


def _print_table(table: pd.DataFrame) -> None:
    if len(table):
        print_wide(list(map(str, table)), table.astype(str).to_numpy().tolist())
