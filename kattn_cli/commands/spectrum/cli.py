"""``kattn spectrum``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import (
    Checkpoint,
    CheckpointOption,
    DeviceOption,
    QuietOption,
    ResultsOption,
    Runs,
    chosen_runs,
    start,
)
from kattn_cli.errors import stoppable
from kattn_cli.runs.find import figures_folder

EXAMPLE = "Example:  kattn spectrum quickstart/softmax quickstart/primal_plus"


def spectrum(
    runs: Runs = None,
    inputs: Annotated[int, typer.Option(min=1, help="How many validation images to average over.")] = 64,
    exact: Annotated[
        int,
        typer.Option(min=1, help="Decompose larger matrices (tokens) by a randomised method, whose error is a column."),
    ] = 1024,
    checkpoint: CheckpointOption = Checkpoint.best,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Singular values and effective rank of what each head does, per layer; of every kept epoch, where there are.

    Of softmax-like attention the N × N matrix, of Primal-Attention the kernel that it induces; of TSSA and XCA, which
    have no such matrix, the operator on tokens and features.
    """
    chosen = chosen_runs(results, runs, quiet)
    where = start(quiet, device)
    from kattn_cli.commands.spectrum.measure import spectra_of_runs
    from kattn_cli.console import console
    from kattn_cli.figures.spectrum import draw_spectra

    with stoppable("what was measured so far is in each run's spectrum.csv"):
        written = spectra_of_runs(chosen, device=where, inputs=inputs, checkpoint=checkpoint.value, exact_up_to=exact)
    for run in written:
        console.print(f"{run.folder / 'spectrum.csv'}")
    if written:
        for picture in draw_spectra(written, figures_folder(results, written)):
            console.print(picture)
