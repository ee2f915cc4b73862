"""The verdicts of a benchmark as a table to read."""

from __future__ import annotations

import pandas as pd
from rich.table import Table

SIGNS = {"at least": "≥", "at most": "≤"}
NUMBERS = ("figure", "95 % interval", "bound")


def report(verdicts: pd.DataFrame) -> Table:
    """Each figure with its interval and what it is, the bound, and whether it holds."""
    table = Table(box=None, pad_edge=False)
    for column in ("item", *NUMBERS, "holds", "is"):
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=column != "is")
    previous = ""
    for row in verdicts.fillna({"says": "", "holds": ""}).itertuples():
        interval = "" if row.low == row.high or pd.isna(row.low) else f"{row.low:.3g} to {row.high:.3g}"
        bound = "" if pd.isna(row.bound) else f"{SIGNS[str(row.relation)]} {row.bound:.3g}"
        figure = "" if pd.isna(row.value) else f"{row.value:.3g}"
        item = str(row.item) if row.item != previous else ""
        table.add_row(item, figure, interval, bound, str(row.holds), str(row.says))
        previous = str(row.item)
    return table
