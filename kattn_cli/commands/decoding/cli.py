"""``kattn decoding``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import (
    DeviceOption,
    DType,
    MemoryOption,
    QuietOption,
    ResultsOption,
    ResumeTableOption,
    SecondsOption,
    silence_profiler,
    start,
)
from kattn_cli.errors import stoppable

EXAMPLE = "Example:  kattn decoding --attention softmax --attention tssa --context 1024 --context 16384"
CONTEXTS = (1024, 4096, 16384, 65536)
DEFAULTS = ("softmax", "tssa", "primal projection=data-independent")


def decoding(
    recipes: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recipes whose mechanisms to measure. [default: softmax, tssa, and primal, data-independent]",
            show_default=False,
        ),
    ] = None,
    attention: Annotated[
        list[str] | None,
        typer.Option(help="A mechanism, my_file.py:MyAttention, or with options 'primal s=8'; repeat."),
    ] = None,
    context: Annotated[
        list[int] | None,
        typer.Option(
            "--context",
            "--n",
            min=1,
            help="Tokens before the one that is timed; repeat. [default: 1,024, 4,096, 16,384, 65,536]",
        ),
    ] = None,
    dim: Annotated[int, typer.Option(min=1, help="The width C.")] = 192,
    heads: Annotated[int, typer.Option(min=1, help="The number of heads.")] = 3,
    batch: Annotated[int, typer.Option(min=1, help="The batch size.")] = 1,
    dtype: Annotated[DType, typer.Option(help="The precision.")] = DType.float32,
    seconds: SecondsOption = 0.3,
    memory: MemoryOption = None,
    resume: ResumeTableOption = False,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Time and memory of one more token over its context.

    Of causal mechanisms. Contexts take turns, so that a difference of a few per cent shows. A cost is flat where it
    stays near that behind the shortest context. A context that does not fit in memory has a row that says so.
    """
    silence_profiler()
    where = start(quiet, device)
    from kattn_cli.commands.decoding.measure import FOLDER, measure_decoding
    from kattn_cli.console import console
    from kattn_cli.experiment.mechanisms import named_mechanisms
    from kattn_cli.figures.decoding import draw_decoding
    from kattn_cli.runs.cost_table import going_on
    from kattn_cli.runs.csv_rows import read_frame

    names = attention or ([] if recipes else DEFAULTS)
    with stoppable(going_on(results / FOLDER)):
        path = measure_decoding(
            named_mechanisms(names, recipes or []),
            contexts=context or CONTEXTS,
            dim=dim,
            heads=heads,
            batch=batch,
            dtype=dtype.value,
            results=results,
            device=where,
            seconds=seconds,
            limit=int(memory * 2**30) if memory else None,
            resume=resume,
        )
    console.print(path)
    console.print(draw_decoding(read_frame(path, "decoding"), path.parent, path.stem))
