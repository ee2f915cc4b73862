"""The summary of runs: clean accuracy or perplexity, that under attack, size and time, over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.runs.run import Run
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.tables.measures import measure_of
from kattn_cli.tables.text import listed, mean_and_half
from kattn_cli.tables.values import values

FACTS = ("params", "train s", "seeds")
MOST_COLUMNS = 7
"""Quantities that fit beside each other; with more, and fewer runs, the runs stand side by side instead."""


def summary(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row for each label and quantity of the runs: ``label, quantity, mean, half, std, seeds``.

    Quantities are those of :func:`~kattn_cli.tables.values.values`; ``half`` is of the 95 % Student-t interval.
    """
    rows = []
    for (label, quantity), part in values(runs).groupby(["label", "quantity"], sort=False):
        mean, half = mean_interval(part["value"].tolist())
        spread = {"mean": mean, "half": half, "std": part["value"].std()}
        rows.append({"label": label, "quantity": quantity, **spread, "seeds": len(part)})
    return pd.DataFrame(rows)


def print_summary(runs: Sequence[Run]) -> pd.DataFrame:
    """Print mean ± half of the 95 % Student-t interval (standard deviation) over seeds; return the tidy table."""
    table = summary(runs)
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
    kinds = list(dict.fromkeys(measure_of(one).in_words for one in quantities if one not in FACTS))
    if kinds in ([], ["top-1 in %"]):
        return "Top-1 on the test set in %"
    all_kinds = listed(kinds)
    where = "in new episodes" if {"return", "normalised score"} & {*kinds} else "on the test set"
    return f"{all_kinds[0].upper()}{all_kinds[1:]}{',' * (len(kinds) > 1)} {where}"


def _cell(quantity: str, mean: float, half: float, std: float) -> str:
    if quantity == "params":
        return f"{mean:,.0f}"
    decimals = measure_of(quantity).decimals
    if quantity == "train s" or math.isnan(half):
        return f"{mean:.{decimals}f}"
    return f"{mean_and_half(mean, half, decimals)} ({std:.{decimals}f})"
