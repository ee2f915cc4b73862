"""The comparison of runs as a table on the console."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from rich.table import Table

from kattn_cli.console import console
from kattn_cli.figures.comparison import comparison
from kattn_cli.results import Run


def print_comparison(runs: Sequence[Run]) -> pd.DataFrame:
    """Print mean ± half width of the 95 % Student-t interval over seeds; returns the tidy table."""
    table = comparison(runs)
    quantities = list(dict.fromkeys(table["quantity"]))
    shown = Table(box=None, padding=(0, 2, 0, 0))
    shown.add_column("run", no_wrap=True)
    for quantity in quantities:
        shown.add_column(quantity, justify="right", no_wrap=True)
    shown.add_column("seeds", justify="right", no_wrap=True)
    for label, part in table.groupby("label", sort=False):
        columns = zip(part["quantity"], part["mean"], part["half"], strict=True)
        cells = {quantity: _cell(quantity, mean, half) for quantity, mean, half in columns}
        shown.add_row(str(label), *(cells.get(quantity, "") for quantity in quantities), str(part["seeds"].max()))
    console.print("\nTop-1 on the test set in %, mean ± half of the 95 % interval over seeds\n")
    console.print(shown)
    console.print()
    return table


def _cell(quantity: str, mean: float, half: float) -> str:
    if quantity == "params":
        return f"{mean:,.0f}"
    return f"{mean:.1f}" if math.isnan(half) or quantity == "train s" else f"{mean:.1f} ± {half:.1f}"
