"""The comparison of runs as a table on the console."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from kattn_cli.console import console
from kattn_cli.runs.run import Run
from kattn_cli.tables.comparison import comparison
from kattn_cli.tables.numbers import kind, listed
from kattn_cli.tables.wide_table import print_wide

PERPLEXITY = "perplexity"
FACTS = ("params", "train s", "seeds")
MOST_COLUMNS = 7
"""Quantities that fit beside each other; with more, and fewer runs, the runs stand side by side instead."""


def print_comparison(runs: Sequence[Run]) -> pd.DataFrame:
    """Print mean ± half of the 95 % Student-t interval (standard deviation) over seeds; returns the tidy table."""
    table = comparison(runs)
    cells = {
        (label, quantity): _cell(quantity, mean, half, std)
        for label, quantity, mean, half, std in zip(
            *(table[column] for column in ("label", "quantity", "mean", "half", "std")), strict=True
        )
    }
    seeds = table.groupby("label", sort=False)["seeds"].max()
    cells |= {(label, "seeds"): str(count) for label, count in seeds.items()}
    labels, quantities = (list(dict.fromkeys(part)) for part in zip(*cells, strict=True))
    console.print(f"\n{_measured(quantities)}, mean ± half of the 95 % interval (standard deviation) over seeds\n")
    if len(quantities) <= max(MOST_COLUMNS, len(labels)):
        print_wide(["run", *quantities], [[one, *(cells.get((one, q), "") for q in quantities)] for one in labels])
    else:
        print_wide(["", *labels], [[q, *(cells.get((one, q), "") for one in labels)] for q in quantities])
    console.print()
    return table


def _measured(quantities: Sequence[str]) -> str:
    kinds = list(dict.fromkeys(kind(one) for one in quantities if one not in FACTS))
    if kinds in ([], ["top-1 in %"]):
        return "Top-1 on the test set in %"
    told = listed(kinds)
    where = "in new episodes" if {"return", "normalised score"} & {*kinds} else "on the test set"
    return f"{told[0].upper()}{told[1:]}, {where}" if len(kinds) > 1 else f"{told[0].upper()}{told[1:]} {where}"


def _cell(quantity: str, mean: float, half: float, std: float) -> str:
    if quantity == "params":
        return f"{mean:,.0f}"
    digits = 2 if quantity.startswith(PERPLEXITY) else 1
    alone = f"{mean:.{digits}f}"
    return alone if math.isnan(half) or quantity == "train s" else f"{alone} ± {half:.{digits}f} ({std:.{digits}f})"
