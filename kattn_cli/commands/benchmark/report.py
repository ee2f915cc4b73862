"""The verdicts of a benchmark as a table to read."""

from __future__ import annotations

import pandas as pd

from kattn_cli.console import print_wide

SIGNS = {"at least": "≥", "at most": "≤"}
HEADER = ["figure of", "figure", "95 % interval", "bound", "holds"]


def print_verdicts(verdicts: pd.DataFrame) -> None:
    """Each figure with its interval, the bound, whether it holds, and what it is."""
    rows = []
    for row in verdicts.fillna({"says": "", "holds": ""}).itertuples():
        interval = "" if row.low == row.high or pd.isna(row.low) else f"{row.low:.3g} to {row.high:.3g}"
        bound = "" if pd.isna(row.bound) else f"{SIGNS[str(row.relation)]} {row.bound:.3g}"
        figure = "" if pd.isna(row.value) else f"{row.value:.3g}"
        rows.append([f"{row.item}: {row.says}", figure, interval, bound, str(row.holds)])
    print_wide(HEADER, rows)
