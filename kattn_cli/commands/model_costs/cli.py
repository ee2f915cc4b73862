"""``kattn model-costs``."""

from __future__ import annotations

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
    references_and_overrides,
    silence_profiler,
    start,
)
from kattn_cli.errors import stoppable

EXAMPLE = "Example:  kattn model-costs quickstart/softmax quickstart/rpc --batch 8"


def model_costs(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECIPE... [KEY=VALUE...]",
            help="Recipes (files, folders or shipped names) and decoders of GPT-2's base size (decoder/softmax, "
            "decoder/tssa), then overrides of all recipes.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Tokens of the decoders' texts; repeat. [default: 4,096 and 8,192]"),
    ] = None,
    batch: Annotated[list[int] | None, typer.Option(min=1, help="A batch size; repeat. [default: 1]")] = None,
    passes: PassOption = None,
    dtype: Annotated[
        DType, typer.Option(help="The precision of matrix products, as train.precision; weights stay float32.")
    ] = DType.float32,
    operators: OperatorsOption = None,
    seconds: SecondsOption = 0.3,
    memory: MemoryOption = None,
    resume: ResumeTableOption = False,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Time, memory and operations of whole models.

    Inference and a whole training step, with its optimizer, beside what the papers print. No data are read: inputs are
    random, of the data set's shape. Multiples are of the first model. What does not fit or fails has a row that says
    so.
    """
    silence_profiler()
    where = start(quiet, device)
    from kattn_cli.commands.model_costs.measure import FOLDER, measure_models
    from kattn_cli.console import console
    from kattn_cli.figures.model_costs import draw_model_costs
    from kattn_cli.runs.cost_table import going_on
    from kattn_cli.runs.csv_rows import read_frame

    references, overrides = references_and_overrides(arguments or [])
    versions: list[Any] = [one.value for one in operators or [Operators.fast]]
    with stoppable(going_on(results / FOLDER)):
        path = measure_models(
            references,
            overrides=overrides,
            passes=[one.value for one in passes or Pass],
            lengths=n or [],
            batches=batch or [1],
            precision=dtype.value,
            operators=versions,
            results=results,
            device=where,
            seconds=seconds,
            limit=int(memory * 2**30) if memory else None,
            resume=resume,
        )
    console.print(path)
    console.print(draw_model_costs(read_frame(path, "models"), path.parent, path.stem))
