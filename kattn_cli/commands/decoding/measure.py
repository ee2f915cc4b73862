"""Measure what one more token costs each causal mechanism as its context grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from kattn_cli.attention import attention_class, attention_classes
from kattn_cli.attention.options import build_attention
from kattn_cli.console import console, print_wide, progress_bar
from kattn_cli.costs.decoding import TokenCost, decoding_costs
from kattn_cli.device import device_name
from kattn_cli.errors import KattnError, RecipeError, is_out_of_memory
from kattn_cli.recipe.schema import Mechanism
from kattn_cli.runs.cost_table import CostTable
from kattn_cli.runs.csv_rows import read_frame
from kattn_cli.runs.provenance import provenance
from kattn_cli.tables.costs import FLAT, decoding_verdicts
from kattn_cli.training.seed import Stream, seed_torch

FOLDER = "complexity"
KEYS = ("attention", "context")
OUT_OF_MEMORY = "out of memory"
POSITIONS = 2
"""Mechanisms with a parameter for each position get this many times the longest context."""


@dataclass(frozen=True)
class _Sizes:
    dim: int
    heads: int
    batch: int
    dtype: str


def measure_decoding(
    mechanisms: dict[str, Mechanism],
    *,
    contexts: Sequence[int],
    dim: int,
    heads: int,
    batch: int,
    dtype: str,
    results: Path,
    device: torch.device,
    seconds: float,
    limit: int | None,
    resume: bool,
) -> Path:
    """Measure each mechanism behind every context, print what was found and return ``decoding-<device>.csv``.

    A row is one mechanism and context, as :func:`~kattn_cli.costs.decoding.decoding_costs` measures it. A context
    that does not fit in memory gets a row that says so, and longer ones are not tried; a mechanism that fails gets rows
    with its error, and the others are measured all the same.

    Args:
        mechanisms: by label, with their options.
        contexts: how many tokens come before the one that is timed.
        seconds: how long each context is timed.
        limit: bytes that may be taken on a CPU; by default what is free.
        resume: whether to go on with an unfinished table of the same settings.

    Raises:
        KattnError: if a mechanism cannot decode or does not take these sizes, before anything is measured.
    """
    contexts, sizes = sorted(set(contexts)), _Sizes(dim, heads, batch, dtype)
    for label, mechanism in mechanisms.items():
        _require_decoding(label, mechanism, POSITIONS * contexts[-1], sizes)
    settings = {
        **asdict(sizes),
        "mechanisms": {label: one.model_dump() for label, one in mechanisms.items()},
        "contexts": contexts,
        "seconds": seconds,
        "limit": limit,
        "threads": torch.get_num_threads(),
    }
    record = provenance(device_name(device))
    table = CostTable.open(results / FOLDER, f"decoding-{device.type}", settings, record, KEYS, resume)
    with table, progress_bar("mechanism") as bar:
        task = bar.add_task("decoding", total=len(mechanisms), count="", note="")
        for number, (label, mechanism) in enumerate(mechanisms.items(), 1):
            bar.update(task, count=f"{number}/{len(mechanisms)}", note=label)
            missing = [context for context in contexts if not table.has(attention=label, context=context)]
            if missing:
                costs, status = _measured(mechanism, contexts, sizes, device, seconds, limit)
                for row in _rows(contexts, costs, status):
                    if row["context"] in missing:
                        table.append({"attention": label, "device": device.type, **asdict(sizes), **row})
            bar.update(task, completed=number)
    print_decoding(read_frame(table.path, "decoding"))
    return table.path


def _require_decoding(label: str, mechanism: Mechanism, positions: int, sizes: _Sizes) -> None:
    if not hasattr(attention_class(mechanism.name), "decode"):
        able = ", ".join(name for name, one in attention_classes().items() if hasattr(one, "decode"))
        raise KattnError(f"--attention {label}: has no decode(x, state), token by token; these have: {able}")
    try:
        with torch.device("meta"):
            _build(mechanism, positions, sizes)
    except RecipeError as error:
        raise KattnError(f"--attention {label}: {str(error).partition(': ')[2]}") from None


def _build(mechanism: Mechanism, positions: int, sizes: _Sizes) -> nn.Module:
    given = {"dim": sizes.dim, "heads": sizes.heads, "seq_len": positions}
    return build_attention(mechanism.name, mechanism.options, **given, causal=True)


def _measured(
    mechanism: Mechanism,
    contexts: Sequence[int],
    sizes: _Sizes,
    device: torch.device,
    seconds: float,
    limit: int | None,
) -> tuple[dict[int, TokenCost], str]:
    """Return costs by context, and why those that are missing are."""
    seed_torch(0, Stream.COMPLEXITY)
    try:
        module = _build(mechanism, POSITIONS * contexts[-1], sizes).to(device, getattr(torch, sizes.dtype)).eval()
        given = {"dim": sizes.dim, "batch": sizes.batch}
        return decoding_costs(module, contexts, **given, seconds=seconds, limit=limit), OUT_OF_MEMORY
    except Exception as error:
        first = str(error).partition("\n")[0]
        return {}, OUT_OF_MEMORY if is_out_of_memory(error) else f"failed: {type(error).__name__}: {first}"


def _rows(contexts: Sequence[int], costs: Mapping[int, TokenCost], failure: str) -> Iterator[dict[str, Any]]:
    for context in contexts:
        cost = costs.get(context)
        columns = {one.name: round(getattr(cost, one.name), 6) if cost else "" for one in fields(TokenCost)}
        yield {"context": context, **columns, "status": "ok" if cost else failure}
        if cost is None and failure == OUT_OF_MEMORY:
            failure = f"{OUT_OF_MEMORY} at a shorter context"


def print_decoding(costs: pd.DataFrame) -> None:
    """Print the costs of a token behind each context, then one line a mechanism: flat or not."""
    shortest = costs.loc[costs["status"] == "ok", "context"].min()
    compared = f"to {shortest:,.0f} (95 %)"
    print_wide(
        ("", "context", "ms a token (quartiles)", compared, "kept MiB", "a step's MiB", ""),
        [_cells(row) for _, row in costs.iterrows()],
    )
    for _, one in decoding_verdicts(costs).iterrows():
        interval = f"[{one['time_low']:.2f}, {one['time_high']:.2f}]"
        console.print(
            f"{one['attention']}, {one['from_context']:,} to {one['to_context']:,} tokens: time {one['time']} "
            f"(× {one['time_ratio']:.2f} {interval}), memory kept {one['memory']} (× {one['state_ratio']:.2f})"
        )
    console.print(f"flat: within {100 * FLAT:.0f} % of that behind the shortest context")


def _cells(row: pd.Series) -> list[str]:
    if row["status"] != "ok":
        return [row["attention"], f"{row['context']:,}", "", "", "", "", row["status"]]
    return [
        row["attention"],
        f"{row['context']:,}",
        f"{row['milliseconds']:.3f} [{row['milliseconds_low']:.3f}, {row['milliseconds_high']:.3f}]",
        f"{row['ratio']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]",
        f"{row['state_mib']:.4g}",
        f"{row['peak_mib']:.4g}",
        "",
    ]
