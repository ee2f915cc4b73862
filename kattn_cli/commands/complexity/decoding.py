"""``kattn complexity --decode``: what one more token costs each causal mechanism, as its context grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from kattn_cli.attention import ATTENTIONS, attention_class
from kattn_cli.attention.options import build_attention
from kattn_cli.commands.complexity.decoding_report import print_decoding
from kattn_cli.console import progress_bar
from kattn_cli.costs.decoding import TokenCost, decoding_costs
from kattn_cli.costs.memory import is_out_of_memory
from kattn_cli.device import device_name
from kattn_cli.errors import KattnError, RecipeError
from kattn_cli.recipe.schema import Mechanism
from kattn_cli.runs.cost_table import CostTable
from kattn_cli.runs.provenance import provenance
from kattn_cli.training.seed import Stream, seed_torch

FOLDER = "complexity"
KEYS = ("attention", "context")
OUT_OF_MEMORY = "out of memory"
POSITIONS = 2
"""Mechanisms with a parameter for each position get so many times the longest context."""


@dataclass(frozen=True)
class _Sizes:
    dim: int
    heads: int
    batch: int
    dtype: torch.dtype

    def columns(self) -> dict[str, Any]:
        return {**asdict(self), "dtype": str(self.dtype).removeprefix("torch.")}


def measure_decoding(
    mechanisms: dict[str, Mechanism],
    *,
    contexts: Sequence[int],
    dim: int,
    heads: int,
    batch: int,
    dtype: torch.dtype,
    results: Path,
    device: torch.device,
    seconds: float,
    limit: int | None,
    resume: bool,
) -> Path:
    """Measure each mechanism behind every context and print what was found; rows go to ``decoding-<device>.csv``.

    A row is one mechanism and context; how it is measured: :func:`~kattn_cli.costs.decoding.decoding_costs`. A
    context that does not fit in memory gets a row that says so, and longer ones are not tried; a mechanism that fails
    gets rows with its error, and the others go on.

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
        **sizes.columns(),
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
                        table.append({"attention": label, "device": device.type, **sizes.columns(), **row})
            bar.update(task, completed=number)
    print_decoding(pd.read_csv(table.path))
    return table.path


def _require_decoding(label: str, mechanism: Mechanism, positions: int, sizes: _Sizes) -> None:
    if not hasattr(attention_class(mechanism.name), "decode"):
        able = ", ".join(name for name, one in ATTENTIONS.items() if hasattr(one, "decode"))
        raise KattnError(f"--decode {label}: has no decode(x, state), token by token; these have: {able}")
    try:
        with torch.device("meta"):
            _build(mechanism, positions, sizes)
    except RecipeError as error:
        raise KattnError(f"--decode {label}: {str(error).partition(': ')[2]}") from None


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
    """Costs by context, and why those missing are."""
    seed_torch(0, Stream.COMPLEXITY)
    try:
        module = _build(mechanism, POSITIONS * contexts[-1], sizes).to(device, sizes.dtype).eval()
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
