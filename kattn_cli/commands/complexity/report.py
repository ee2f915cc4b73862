"""What ``kattn complexity`` prints and draws of a table that it has measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.figures.complexity import draw_complexity
from kattn_cli.tables.complexity import completed, exponents, not_counted, options_lines, shortfalls, summary

LEFT_OUT = (
    "Operations of a forward pass, all samples. torch's counter sees matrix products; biases and what is listed count "
    "0 there. Formulas count all that is calculated, and leave out memory moves, indices and random draws."
)


def report(path: Path, fit_from: int | None = None) -> None:
    """Print what was measured at the largest sizes, the exponents, and what was not counted; draw the figures.

    The exponents go to ``<table>.exponents.csv``. A table of one size has neither them nor figures.
    """
    costs = pd.read_csv(path)
    fitted = exponents(costs, fit_from)
    for line in options_lines(completed(costs)):
        console.print(line, markup=False)
    _print(summary(costs, fitted))
    for line in shortfalls(costs):
        console.print(line, markup=False)
    console.print()
    _print(not_counted(costs))
    console.print(LEFT_OUT)
    console.print(path)
    done = costs[costs["status"] == "ok"]
    if done["n"].nunique() > 1:
        fitted.to_csv(path.with_name(f"{path.stem}.exponents.csv"), index=False)
    if done["n"].nunique() > 1 or done["dim"].nunique() > 1:
        for picture in draw_complexity(costs, path.parent, path.stem, fit_from):
            console.print(picture)


def _print(table: pd.DataFrame) -> None:
    if len(table):
        print_wide(list(map(str, table)), table.astype(str).to_numpy().tolist())
