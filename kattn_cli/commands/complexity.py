"""``kattn complexity``: time, memory and operations of each mechanism as the sequence grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch

from kattn_cli.analysis.complexity import PASSES, Cost, OutOfMemory, Pass, forward_flops, measure
from kattn_cli.attention import MECHANISMS
from kattn_cli.attention.options import all_options, build_attention, check_options
from kattn_cli.commands import recipes
from kattn_cli.console import progress_bar
from kattn_cli.device import device_name
from kattn_cli.errors import RecipeError
from kattn_cli.provenance import now, provenance
from kattn_cli.recipe import Mechanism
from kattn_cli.recipe_files import find_recipes
from kattn_cli.results import append_rows, new_csv, write_manifest_of
from kattn_cli.training.seed import Stream, seed_torch

FOLDER = "complexity"


@dataclass(frozen=True)
class Grid:
    """What is measured: sequence lengths at one width, number of heads and batch size."""

    lengths: tuple[int, ...]
    dim: int
    heads: int
    batch: int
    dtype: torch.dtype


def measure_complexity(
    references: Sequence[str],
    names: Sequence[str],
    grid: Grid,
    *,
    results: Path,
    device: torch.device,
    seconds: float,
    limit: int | None,
) -> Path:
    """Measure the mechanisms of the recipes, and those named, with their defaults; returns the CSV.

    Where none is given, those of the papers.

    A size that does not fit in memory gets a row that says so, and larger ones of that mechanism are not tried.
    """
    mechanisms = _mechanisms(references, names)
    path = new_csv(results / FOLDER, device.type)
    record = provenance(device_name(device))
    settings = {
        "dim": grid.dim,
        "heads": grid.heads,
        "batch": grid.batch,
        "dtype": str(grid.dtype),
        "seconds": seconds,
    }
    write_manifest_of(path, {**record, "settings": settings})
    with progress_bar("size") as bar:
        total = len(mechanisms) * len(PASSES) * len(grid.lengths)
        task = bar.add_task("complexity", total=total, count="", note="")
        for label, mechanism in mechanisms.items():
            for what in PASSES:
                fits = True
                for n in sorted(grid.lengths):
                    bar.update(task, note=f"{label} {what} N = {n:,}")
                    row = _row(label, mechanism, what, n, grid, device, seconds, limit, fits)
                    fits = fits and row["status"] == "ok"
                    append_rows(path, [row])
                    done = bar.tasks[0].completed + 1
                    bar.update(task, completed=done, count=f"{int(done)}/{total}")
    write_manifest_of(path, {**record, "settings": settings, "end": now()})
    return path


def _mechanisms(references: Sequence[str], names: Sequence[str]) -> dict[str, Mechanism]:
    """By label: the mechanism's name; where recipes give one mechanism different options, the later are numbered."""
    if not references and not names:
        names = tuple(MECHANISMS)
    asked = [_by_name(name) for name in names]
    for path in (path for reference in references for path in find_recipes(reference)):
        attention = recipes.load(path, weights=False, data=False).attention
        asked += [Mechanism(name=one.name, **one.options) for one in (attention, *attention.layers.values())]
    chosen: dict[str, Mechanism] = {}
    for mechanism in asked:
        if mechanism not in chosen.values():
            name = mechanism.name.rpartition(":")[2]
            numbered = (name if k == 1 else f"{name}#{k}" for k in count(1))
            chosen[next(label for label in numbered if label not in chosen)] = mechanism
    return chosen


def _by_name(name: str) -> Mechanism:
    if faults := check_options(name, {}, ()):
        raise RecipeError(f"--attention {name}: {faults[0].message}")
    return Mechanism(name=name, **all_options(name, {}))


def _row(
    label: str,
    mechanism: Mechanism,
    what: Pass,
    n: int,
    grid: Grid,
    device: torch.device,
    seconds: float,
    limit: int | None,
    may_fit: bool,
) -> dict[str, Any]:
    seed_torch(0, Stream.COMPLEXITY, n)
    module = build_attention(mechanism.name, mechanism.options, dim=grid.dim, heads=grid.heads, seq_len=n)
    module = module.to(device, grid.dtype)
    flops, counted = forward_flops(module, n, grid.dim)
    cost, status = None, "out of memory at a smaller size"
    if may_fit:
        try:
            cost, status = measure(module, _input(n, grid, device), what, seconds, limit), "ok"
        except OutOfMemory:
            status = "out of memory"
    return {
        "attention": label,
        "pass": what,
        "device": device.type,
        "dtype": str(grid.dtype).removeprefix("torch."),
        "n": n,
        "dim": grid.dim,
        "heads": grid.heads,
        "batch": grid.batch,
        **_columns(cost),
        "forward_flops": flops * grid.batch,
        "flops_counted": counted,
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
        "status": status,
    }


def _input(n: int, grid: Grid, device: torch.device) -> torch.Tensor:
    return torch.randn(grid.batch, n, grid.dim, dtype=grid.dtype).to(device)


def _columns(cost: Cost | None) -> dict[str, Any]:
    if cost is None:
        return {"milliseconds": "", "spread": "", "peak_mib": ""}
    return {
        "milliseconds": round(cost.milliseconds, 4),
        "spread": round(cost.spread, 4),
        "peak_mib": round(cost.peak_mib, 3),
    }
