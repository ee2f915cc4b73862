"""``kattn generate``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import Checkpoint, CheckpointOption, DeviceOption, QuietOption, ResultsOption, start
from kattn_cli.errors import KattnError, stoppable

EXAMPLE = 'Example:  kattn generate language/shakespeare/tssa --prompt "KING:" --temperature 0.8'


def generate(
    run: Annotated[
        str | None,
        typer.Argument(
            help="One run: a folder, or a name under the results folder. [default: the newest run]", show_default=False
        ),
    ] = None,
    prompt: Annotated[
        str, typer.Option(help="What to go on with. Empty: after a line end, if the vocabulary has one.")
    ] = "",
    tokens: Annotated[int, typer.Option(min=1, help="How many tokens to add.")] = 200,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="What the logits are divided by; 0 takes the likeliest token.")
    ] = 1.0,
    top_k: Annotated[
        int, typer.Option("--top-k", min=0, help="Draw among so many of the likeliest tokens; 0: among all.")
    ] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")] = 0,
    checkpoint: CheckpointOption = Checkpoint.best,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Let a language model go on with a prompt: the text to stdout as it is made, all else to stderr.

    Its corpus is not needed, only the run's folder. Memory, and the time of a token, do not grow with what came before
    where every mechanism keeps a state of constant size, as causal TSSA and Primal-Attention do. Where the text passes
    the model's context, the model reads on from the last half of it.
    """
    if not math.isfinite(temperature):
        raise KattnError(f"--temperature {temperature}: expected a number, 0 or more")
    where = start(quiet, device)
    from kattn_cli.commands.generate.generate import Sampling, one_run, open_speaker, speak

    def write(text: str) -> None:
        typer.echo(text, nl=False)

    def tell(line: str) -> None:
        if not quiet:
            typer.echo(line, err=True)

    chosen = one_run(results, run)
    if run is None:
        tell(f"The newest run: {chosen.folder}")
    speaker = open_speaker(chosen, where, checkpoint.value, tell)
    with stoppable("the text ends here"):
        speak(speaker, prompt, Sampling(tokens, temperature, top_k or None, seed), write, tell)
