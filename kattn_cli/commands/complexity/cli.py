"""``kattn complexity``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from kattn_cli.commands.options import (
    DeviceOption,
    DType,
    QuietOption,
    ResultsOption,
    references_and_overrides,
    silence_profiler,
    start,
)
from kattn_cli.errors import KattnError, stoppable

EXAMPLE = "Example:  kattn complexity --attention tssa --attention 'rpc iterations=2' --n 256 --n 1024 --n 4096"
LENGTHS = tuple(2**k for k in range(6, 12))
CONTEXTS = (1024, 4096, 16384, 65536)
DECODED = ("softmax", "tssa", "primal projection=data-independent")
LONGEST = 60.0
NOT_WITH = {
    "--model": ("--attention", "--dim", "--heads", "--causal", "--limit", "--fit-from"),
    "--decode": ("--pass", "--causal", "--operators", "--limit", "--fit-from"),
}
SINGLE = {"--model": ("--dtype",), "--decode": ("--dim", "--heads", "--batch", "--dtype")}


class Pass(str, Enum):
    """What is measured."""

    forward = "forward"
    forward_backward = "forward+backward"


class Causal(str, Enum):
    """Whether a token sees those after it."""

    no = "no"
    yes = "yes"


class Operators(str, Enum):
    """The version of an operator."""

    fast = "fast"
    plain = "plain"
    slow = "slow"


def complexity(
    recipes: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recipes whose mechanisms to measure, with --model also KEY=VALUE. [default: those of the papers]",
            show_default=False,
        ),
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
    passes: Annotated[
        list[Pass] | None, typer.Option("--pass", help="forward or forward+backward. [default: both]")
    ] = None,
    causal: Annotated[list[Causal] | None, typer.Option(help="no, yes, or both by repeating. [default: no]")] = None,
    dtype: Annotated[list[DType] | None, typer.Option(help="A precision; repeat. [default: float32]")] = None,
    operators: Annotated[
        list[Operators] | None,
        typer.Option(
            help="fast: kernels made for the operator; plain: torch's operations; slow: the equations as they stand. "
            "Repeat. [default: fast]"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Repeat each measurement for at least so long.")] = 0.3,
    limit: Annotated[
        float | None,
        typer.Option(
            min=0.001, help="Seconds a call may take; after a longer one, larger N are not tried. [default: 60]"
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(min=0.001, help="GiB a measurement may take on a CPU. [default: what is free]"),
    ] = None,
    fit_from: Annotated[
        int | None,
        typer.Option(min=1, help="Fit the exponents on N from here on. [default: the upper half of the sizes]"),
    ] = None,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="Measure whole models: of recipes, or GPT-2-like decoder/softmax, decoder/tssa at lengths --n.",
        ),
    ] = False,
    decode: Annotated[
        bool,
        typer.Option(
            "--decode", help="Measure what one more token costs a causal mechanism; --n is then how many came before."
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished table of this very command.")
    ] = False,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Time, peak memory and operations of each mechanism as N grows, and the exponents fitted to them.

    Every combination of the sizes is measured, one row each. Softmax is always among them, by PyTorch's fused attention
    ("softmax") and with its N × N matrix ("softmax (slow)"). Time is the median of repeated calls with its
    interquartile range; memory is the peak above input and parameters; operations are those of a forward pass by the
    mechanism's own formula, beside what torch's counter sees, which is matrix products alone. Formulas leave out memory
    moves, indices and random draws. What does not fit, takes too long or fails is said in its row.
    """
    given = {
        "--attention": attention, "--dim": dim, "--heads": heads, "--causal": causal, "--pass": passes,
        "--operators": operators, "--limit": limit, "--fit-from": fit_from, "--dtype": dtype, "--batch": batch,
    }  # fmt: skip
    _refuse_misplaced(given, recipes or [], model, decode)
    dims, heads, batches = dim or [192], heads or [3], batch or [1]
    if not model:
        _refuse_indivisible(dims, heads)
    lengths = sorted(set(n or (CONTEXTS if decode else LENGTHS)))
    if fit_from and sum(one >= fit_from for one in lengths) < 2:
        raise KattnError(f"--fit-from {fit_from}: expected at least two sizes from there on; --n goes to {lengths[-1]}")
    silence_profiler()
    where = start(quiet, device)
    import torch

    from kattn_cli.runs.cost_table import going_on

    dtypes = [getattr(torch, one.value) for one in dtype or [DType.float32]]
    versions: list[Any] = [one.value for one in operators or [Operators.fast]]
    measured = [one.value for one in passes or Pass]
    limit_bytes = int(memory * 2**30) if memory else None
    shared: dict[str, Any] = {"results": results, "device": where, "resume": resume}
    with stoppable(going_on(results / "complexity")):
        if model:
            shared |= {"seconds": seconds, "limit": limit_bytes, "dtype": dtypes[0], "operators": versions}
            _models(recipes or [], shared | {"passes": measured, "lengths": n or [], "batches": batches})
        elif decode:
            shared |= {"seconds": seconds, "limit": limit_bytes, "dtype": dtypes[0], "batch": batches[0]}
            _decoding(attention or [], recipes or [], shared | {"contexts": lengths, "dim": dims[0], "heads": heads[0]})
        else:
            from kattn_cli.commands.complexity.grid import Grid, competitors
            from kattn_cli.commands.complexity.report import report
            from kattn_cli.commands.complexity.row import Bounds
            from kattn_cli.commands.complexity.run import measure_complexity

            seen = [one is Causal.yes for one in causal or [Causal.no]]
            sizes = (lengths, dims, heads, batches, measured, seen, dtypes)
            grid = Grid(*(tuple(dict.fromkeys(one)) for one in sizes))
            chosen = competitors(recipes or [], attention or [], versions, causal=True in seen)
            bounds = Bounds(seconds, limit or LONGEST, limit_bytes)
            report(measure_complexity(chosen, grid, bounds, **shared), fit_from)


def _refuse_misplaced(given: Mapping[str, object], recipes: Sequence[str], model: bool, decode: bool) -> None:
    if model and decode:
        raise KattnError("--model and --decode: expected one of the two")
    mode = "--model" if model else "--decode" if decode else ""
    for option, value in given.items():
        if value and option in NOT_WITH.get(mode, ()):
            raise KattnError(f"{option}: changes nothing with {mode}; leave it out")
        if isinstance(value, list) and len(value) > 1 and option in SINGLE.get(mode, ()):
            raise KattnError(f"{option}: expected one value with {mode}, not {len(value)}")
    if model and not recipes:
        example = "kattn complexity --model quickstart/softmax quickstart/rpc"
        raise KattnError(f"--model: no recipe was named. For example: {example}")


def _refuse_indivisible(dims: Sequence[int], heads: Sequence[int]) -> None:
    for dim, count in product(dims, heads):
        if dim % count:
            raise KattnError(f"--heads {count} does not divide --dim {dim}")


def _models(recipes: list[str], asked: dict[str, Any]) -> None:
    import pandas as pd

    from kattn_cli.commands.complexity.model_costs import measure_models
    from kattn_cli.console import console
    from kattn_cli.figures.model_costs import draw_model_costs

    references, overrides = references_and_overrides(recipes)
    path = measure_models(references, overrides=overrides, **asked)
    console.print(path)
    console.print(draw_model_costs(pd.read_csv(path), path.parent, path.stem))


def _decoding(names: Sequence[str], recipes: Sequence[str], asked: dict[str, Any]) -> None:
    import pandas as pd

    from kattn_cli.commands.complexity.decoding import measure_decoding
    from kattn_cli.commands.complexity.grid import named_mechanisms
    from kattn_cli.console import console
    from kattn_cli.figures.decoding import draw_decoding

    path = measure_decoding(named_mechanisms(names or ([] if recipes else DECODED), recipes), **asked)
    console.print(path)
    console.print(draw_decoding(pd.read_csv(path), path.parent, path.stem))
