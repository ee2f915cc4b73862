"""``kattn throughput``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import DeviceOption, QuietOption, ResultsOption, start
from kattn_cli.errors import stoppable

EXAMPLE = "Example:  kattn throughput quickstart/softmax train.batch_size=256"


def throughput(
    recipe: Annotated[str, typer.Argument(help="The recipe whose training to measure.")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE...]")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, in each of which all take their turn.")] = 7,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the optimizer a turn.")] = 20,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Training speed beside timm's, and of real data.

    Our loop against timm's model in a plain one, and the recipe's data against synthetic input.
    """
    where = start(quiet, device)
    from kattn_cli.commands.throughput.measure import PAIRS, measure_throughput
    from kattn_cli.console import console

    with stoppable("nothing was written"):
        done = measure_throughput(recipe, overrides or [], results=results, device=where, rounds=rounds, steps=steps)
    for name in done.speeds.rounds:
        console.print(f"{name:24} {done.speeds.median(name):10,.1f} img/s")
    for one, other in PAIRS:
        if other in done.speeds.rounds:
            middle, least, most = done.speeds.ratio(one, other)
            console.print(f"{one} / {other}: {middle:.3f} ({least:.3f} to {most:.3f})")
    console.print(done.path)
