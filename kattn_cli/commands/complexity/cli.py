"""``kattn complexity``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from kattn_cli.commands.options import (
    DeviceOption,
    DType,
    MemoryOption,
    Operators,
    OperatorsOption,
    Pass,
    PassOption,
    QuietOption,
    ResultsOption,
    ResumeTableOption,
    SecondsOption,
    silence_profiler,
    start,
)
from kattn_cli.errors import KattnError, stoppable

EXAMPLE = "Example:  kattn complexity --attention tssa --attention 'rpc iterations=2' --n 256 --n 1024 --n 4096"
LENGTHS = tuple(2**k for k in range(6, 12))


class Causal(str, Enum):
    """Whether a token sees those after it."""

    no = "no"
    yes = "yes"


def complexity(
    recipes: Annotated[
        list[str] | None,
        typer.Argument(help="Recipes whose mechanisms to measure. [default: those of the papers]", show_default=False),
    ] = None,
    attention: Annotated[
        list[str] | None,
        typer.Option(help="A mechanism, my_file.py:MyAttention, or with options 'rpc iterations=6'; repeat."),
    ] = None,
    n: Annotated[
        list[int] | None,
        typer.Option(min=1, help="A number of tokens N; repeat. [default: 64 to 2,048 by doubling]"),
    ] = None,
    dim: Annotated[list[int] | None, typer.Option(min=1, help="A width C; repeat. [default: 192]")] = None,
    heads: Annotated[list[int] | None, typer.Option(min=1, help="A number of heads; repeat. [default: 3]")] = None,
    batch: Annotated[list[int] | None, typer.Option(min=1, help="A batch size; repeat. [default: 1]")] = None,
    passes: PassOption = None,
    causal: Annotated[list[Causal] | None, typer.Option(help="no, yes, or both by repeating. [default: no]")] = None,
    dtype: Annotated[list[DType] | None, typer.Option(help="A precision; repeat. [default: float32]")] = None,
    operators: OperatorsOption = None,
    seconds: SecondsOption = 0.3,
    limit: Annotated[
        float,
        typer.Option(min=0.001, help="Seconds a call may take; after a longer one, larger N are not tried."),
    ] = 60.0,
    memory: MemoryOption = None,
    fit_from: Annotated[
        int | None,
        typer.Option(min=1, help="Fit the exponents on N from here on. [default: the upper half of the sizes]"),
    ] = None,
    resume: ResumeTableOption = False,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Time, memory and operations of mechanisms over N.

    With the exponents fitted to them. Every combination of the sizes is measured, one row each. Softmax is always among
    them, by PyTorch's fused attention ("softmax") and with its N × N matrix ("softmax (slow)"). Time is the median of
    repeated calls with its interquartile range; memory is the peak above input and parameters; operations are those of
    a forward pass by the mechanism's own formula, beside what torch's counter sees, which is matrix products alone.
    Formulas leave out memory moves, indices and random draws. What does not fit, takes too long or fails has a row
    that says so.

    For whole models see kattn model-costs, for one more token kattn decoding.
    """
    dims, heads = dim or [192], heads or [3]
    _refuse_indivisible(dims, heads)
    lengths = sorted(set(n or LENGTHS))
    if fit_from and sum(one >= fit_from for one in lengths) < 2:
        raise KattnError(f"--fit-from {fit_from}: expected at least two sizes from there on; --n goes to {lengths[-1]}")
    silence_profiler()
    where = start(quiet, device)
    from kattn_cli.commands.complexity.grid import Grid, competitors
    from kattn_cli.commands.complexity.measure import FOLDER, Bounds, measure_complexity, print_and_draw
    from kattn_cli.runs.cost_table import going_on

    seen = [one is Causal.yes for one in causal or [Causal.no]]
    versions: list[Any] = [one.value for one in operators or [Operators.fast]]
    measured = [one.value for one in passes or Pass]
    dtypes = [one.value for one in dtype or [DType.float32]]
    sizes = (lengths, dims, heads, batch or [1], measured, seen, dtypes)
    grid = Grid(*(tuple(dict.fromkeys(one)) for one in sizes))
    bounds = Bounds(seconds, limit, int(memory * 2**30) if memory else None)
    with stoppable(going_on(results / FOLDER)):
        chosen = competitors(recipes or [], attention or [], versions, causal=True in seen)
        path = measure_complexity(chosen, grid, bounds, results=results, device=where, resume=resume)
        print_and_draw(path, fit_from)


def _refuse_indivisible(dims: Sequence[int], heads: Sequence[int]) -> None:
    for dim, count in product(dims, heads):
        if dim % count:
            raise KattnError(f"--heads {count} does not divide --dim {dim}")
