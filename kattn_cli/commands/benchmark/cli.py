"""``kattn benchmark``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import DeviceOption, DType, QuietOption, ResultsOption, silence_profiler, start
from kattn_cli.errors import stoppable

EXAMPLE = "Example:  kattn benchmark tssa_operator rpc_image --rounds 5"


def benchmark(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ITEM...]",
            help="What to measure: tssa_operator, tssa_layer, rpc_long, rpc_image, primal_operator, "
            "causal_tssa_operator, time_exponents, memory_exponents, decoding, bandwidth, training_steps. "
            "[default: all of it, a quarter of an hour on two cores]",
            show_default=False,
        ),
    ] = None,
    dtype: Annotated[
        DType | None, typer.Option(help="Precision. [default: float32 on a CPU, bfloat16 on a GPU]", show_default=False)
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, in each of which all programs take their turn.")] = 7,
    seconds: Annotated[float, typer.Option(min=0.001, help="A turn repeats its program for about so long.")] = 0.2,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished benchmark of these settings.")
    ] = False,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Our operators against slow ones and PyTorch's.

    Ratios within one run, exponents, decoding, bandwidth. Slow is each operator by its equations, one after the other.
    Programs take turns, round by round; a ratio is the
    median over rounds, with its 95 % interval (nan for fewer than six), beside the bound it is to keep.
    """
    silence_profiler()
    where = start(quiet, device)
    from kattn_cli.commands.benchmark.measure import FOLDER, print_checks, run_benchmark
    from kattn_cli.console import console
    from kattn_cli.figures.benchmark import draw_benchmark, has_ratios
    from kattn_cli.runs.cost_table import going_on
    from kattn_cli.runs.csv_rows import read_frame

    precision = dtype.value if dtype else "bfloat16" if where.type == "cuda" else "float32"
    with stoppable(going_on(results / FOLDER)):
        path = run_benchmark(
            items or [],
            results=results,
            device=where,
            dtype=precision,
            rounds=rounds,
            seconds=seconds,
            resume=resume,
        )
    checks = read_frame(path, "benchmark")
    print_checks(checks)
    console.print(path)
    if has_ratios(checks):
        console.print(draw_benchmark(checks, path.parent, path.stem))
