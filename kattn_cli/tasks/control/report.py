"""What is printed of rollouts: a line for each run and target, and several seeds side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.errors import stoppable
from kattn_cli.runs.run import Run
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.tables.text import mean_and_half
from kattn_cli.tasks.control.rollouts import Measured, measure_rollouts
from kattn_cli.tasks.task import Asked

COLUMNS = ("target_return", "return", "normalised_score", "length")


def measure_and_print(runs: Sequence[Run], asked: Asked) -> None:
    """Run the episodes of each run, and print what came out; Ctrl-C says how to go on."""
    with stoppable("the episodes run so far are in each run's rollouts.csv; the same command goes on from there"):
        print_rollouts(measure_rollouts(runs, asked))


def print_rollouts(measured: Sequence[Measured]) -> None:
    """Print a line for each run and target; of several runs, each label's mean over seeds."""
    table = pd.concat([_frame(one) for one in measured], ignore_index=True)
    console.print("\nReturn, mean ± half of the 95 % interval over episodes\n")
    score = ["normalised score"] if table["normalised_score"].notna().any() else []
    lines = []
    for _, part in table.groupby(["folder", "target_return"], sort=False):
        cells = [part["folder"].iloc[0], _target(part), _return(part), *([_score(part)] if score else [])]
        lines.append([*cells, f"{part['length'].mean():,.0f}", str(len(part))])
    print_wide(["run", "target", "return", *score, "steps", "episodes"], lines)
    console.print()
    if len(measured) > 1:
        _print_seeds(table)


def _frame(measured: Measured) -> pd.DataFrame:
    rows = pd.DataFrame([{column: row[column] for column in COLUMNS} for row in measured.rows])
    numbers = rows.apply(pd.to_numeric, errors="coerce")
    run = measured.run
    return numbers.assign(folder=str(run.folder), label=run.label, run_seed=run.seed)


def _target(part: pd.DataFrame) -> str:
    return f"{part['target_return'].iloc[0]:,.6g}"


def _return(part: pd.DataFrame) -> str:
    return mean_and_half(*mean_interval(part["return"].tolist()), flags=",")


def _score(part: pd.DataFrame) -> str:
    score = part["normalised_score"].mean()
    return "" if score != score else f"{score:.1f}"


def _print_seeds(table: pd.DataFrame) -> None:
    """Print it as the Primal-Attention paper's Table 5: the deviation is that of the runs' means."""
    scored = table["normalised_score"].notna().all()
    column = "normalised_score" if scored else "return"
    by_run = table.groupby(["label", "target_return", "folder"], sort=False)[column].mean().reset_index()
    lines = []
    for _, part in by_run.groupby(["label", "target_return"], sort=False):
        values = part[column]
        spread = mean_and_half(values.mean(), values.std(), flags=",")
        lines.append([part["label"].iloc[0], _target(part), spread, str(len(values))])
    what = "Normalised score" if scored else "Return"
    console.print(f"{what}, mean ± standard deviation over seeds\n")
    print_wide(["run", "target", what.lower(), "seeds"], lines)
    console.print()
