"""Rows of ``kattn complexity``, of any age, and the exponents fitted to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kattn_cli.tables.statistics import power_law

QUANTITIES = {"milliseconds": "time (ms)", "peak_mib": "peak memory (MiB)"}
SETTING = ["dtype", "causal", "dim", "heads", "batch"]
"""What is fixed while N grows, but for the pass."""
DEFAULTS: dict[str, Any] = {
    "version": "fast",
    "causal": "no",
    "options": "",
    "dtype": "",
    "dim": 0,
    "heads": 0,
    "batch": 1,
}
"""Of columns that older tables lack."""
TEXTS = ("options", "not_counted")
"""Columns that may be empty."""


def completed(costs: pd.DataFrame) -> pd.DataFrame:
    """The rows with every column that is used here, and ``label``: ``softmax``, ``softmax (slow)``."""
    missing = {column: value for column, value in DEFAULTS.items() if column not in costs}
    table = costs.assign(**missing)
    table = table.assign(**{column: _as_text(table[column]) for column in TEXTS if column in table})
    labels = [shown(*pair) for pair in zip(table["attention"], table["version"], strict=True)]
    return table.assign(label=labels)


def _as_text(column: pd.Series) -> list[str]:
    """A column that pandas may have read as numbers, since it was empty."""
    return ["" if pd.isna(one) else str(one) for one in column]


def shown(attention: str, version: str) -> str:
    """``softmax``, ``softmax (slow)``."""
    return attention if version == "fast" else f"{attention} ({version})"


def exponents(costs: pd.DataFrame, fit_from: int | None = None) -> pd.DataFrame:
    """Slopes of log cost over log N for each mechanism, version, pass and setting, with 95 % intervals.

    ``attention`` is the label, with the version. Fitted on sizes from ``fit_from`` on; by default on the upper half of
    the sizes that fitted.
    """
    rows = []
    table = completed(costs)
    for key, part in table[table["status"] == "ok"].groupby(["label", "version", "pass", *SETTING], sort=False):
        ordered = part.sort_values("n")
        used = ordered[ordered["n"] >= fit_from] if fit_from else ordered.tail(max(2, (len(part) + 1) // 2))
        if used.empty:
            continue
        row = dict(zip(["attention", "version", "pass", *SETTING], key, strict=True))
        row |= {"from_n": used["n"].min(), "to_n": used["n"].max(), "points": len(used)}
        for quantity in (*QUANTITIES, "forward_flops"):
            fit = power_law(used["n"].tolist(), used[quantity].tolist())
            names = (f"{quantity}_exponent", f"{quantity}_exponent_low", f"{quantity}_exponent_high")
            row |= dict(zip(names, fit, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def varying(table: pd.DataFrame) -> list[str]:
    """The columns of a setting that have several values."""
    return [column for column in SETTING if table[column].nunique() > 1]


def words(setting: dict[str, object]) -> Iterator[str]:
    """A setting, or a part of it, for people: ``C = 192``, ``causal``."""
    forms = {"dim": "C = {:,}", "heads": "{} heads", "batch": "batch {}", "dtype": "{}"}
    for column, value in setting.items():
        if column == "causal":
            yield "causal" if value == "yes" else "not causal"
        elif value:
            yield forms[column].format(value)


def options_lines(table: pd.DataFrame) -> list[str]:
    """``primal#2: projection=data-independent`` for each mechanism that is not measured with its defaults."""
    chosen = table[table["options"] != ""].drop_duplicates("attention")
    return [f"{row['attention']}: {row['options']}" for _, row in chosen.iterrows()]
