"""Rows of ``kattn complexity``, of any age: the exponents fitted to them, their summary, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from kattn_cli.statistics.intervals import power_law

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
BASELINE = "softmax"
NOT_CAUSAL = "no causal form"


def completed(costs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with every column that is used here, and ``label``: ``softmax``, ``softmax (slow)``."""
    missing = {column: value for column, value in DEFAULTS.items() if column not in costs}
    table = costs.assign(**missing)
    table = table.assign(**{column: _as_text(table[column]) for column in TEXTS if column in table})
    labels = [shown(*pair) for pair in zip(table["attention"], table["version"], strict=True)]
    return table.assign(label=labels)


def _as_text(column: pd.Series) -> list[str]:
    """Return a column as text, which pandas may have read as numbers, since it was empty."""
    return ["" if pd.isna(one) else str(one) for one in column]


def shown(attention: str, version: str) -> str:
    """Return ``softmax``, ``softmax (slow)``."""
    return attention if version == "fast" else f"{attention} ({version})"


def exponents(costs: pd.DataFrame, fit_from: int | None = None) -> pd.DataFrame:
    """Return the slopes of log cost over log N for each mechanism, version, pass and setting, with 95 % intervals.

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
    """Return the columns of a setting that have several values."""
    return [column for column in SETTING if table[column].nunique() > 1]


def words(setting: dict[str, object]) -> Iterator[str]:
    """Yield the parts of a setting for people: ``C = 192``, ``causal``."""
    forms = {"dim": "C = {:,}", "heads": "{} heads", "batch": "batch {}", "dtype": "{}"}
    for column, value in setting.items():
        if column == "causal":
            yield "causal" if value == "yes" else "not causal"
        elif value:
            yield forms[column].format(value)


def options_lines(table: pd.DataFrame) -> list[str]:
    """Return a line such as ``primal#2: projection=data-independent`` for each mechanism without its defaults."""
    chosen = table[table["options"] != ""].drop_duplicates("attention")
    return [f"{row['attention']}: {row['options']}" for _, row in chosen.iterrows()]


def summary(costs: pd.DataFrame, fitted: pd.DataFrame) -> pd.DataFrame:
    """Return of the largest size of each series: time, memory, time as a multiple of PyTorch's softmax; exponents."""
    table = completed(costs)
    ok = table[table["status"] == "ok"]
    key = ["label", "pass", *SETTING]
    softmax = ok[ok["label"] == BASELINE].set_index(["pass", *SETTING, "n"])["milliseconds"]
    fits = fitted.set_index(["attention", "pass", *SETTING]) if len(fitted) else fitted
    rows = []
    for one, part in ok.groupby(key, sort=False):
        last = part.loc[part["n"].idxmax()]
        beside = softmax.get((*one[1:], last["n"]), math.nan)
        row = {
            "attention": one[0],
            "pass": one[1],
            **{column: last[column] for column in varying(table)},
            "N": f"{last['n']:,}",
            "ms": f"{last['milliseconds']:.4g}",
            "IQR": f"{last['spread']:.2g}" if "spread" in last else "",
            "MiB": f"{last['peak_mib']:.4g}",
            "time / softmax": f"{last['milliseconds'] / beside:.3g}",
        }
        for quantity, short in zip(QUANTITIES, ("time", "memory"), strict=True):
            row[f"{short} in N"] = _interval(fits.loc[one], quantity) if one in fits.index else ""
        rows.append(row)
    return pd.DataFrame(rows)


def _interval(fit: pd.Series, quantity: str) -> str:
    value, low, high = (fit[f"{quantity}_exponent{end}"] for end in ("", "_low", "_high"))
    if math.isnan(value):
        return ""
    return f"{value:.2f}" if math.isnan(low) else f"{value:.2f} ({low:.2f} to {high:.2f})"


def shortfalls(costs: pd.DataFrame) -> list[str]:
    """Return a line for each way in which a series ended early or was not measured."""
    table = completed(costs)
    bad = table[(table["status"] != "ok") & ~table["status"].str.endswith("at a smaller size")]
    causal = bad["status"].str.startswith(NOT_CAUSAL)
    lines = []
    for status, part in bad[causal].groupby("status", sort=False):
        lines.append(f"{', '.join(part['attention'].unique())}: {status}")
    for key, part in bad[~causal].groupby(["label", "pass", *varying(table), "status"], sort=False):
        label, what, *values, status = key
        setting = ", ".join([label, what, *words(dict(zip(varying(table), values, strict=True)))])
        sizes = ", ".join(f"{n:,}" for n in part["n"])
        more = "; larger ones were not tried" if status.startswith(("out of memory", "over ")) else ""
        lines.append(f"{setting}: {status} at N = {sizes}{more}")
    return lines


def not_counted(costs: pd.DataFrame) -> pd.DataFrame:
    """Return operations of each mechanism at its largest size, and what torch's counter leaves out of them.

    Nothing is unseen where the counter has more than the formula: the plain version of causal primal takes running sums
    as products with triangles of ones.
    """
    table = completed(costs).dropna(subset=["forward_flops"])
    rows = []
    for (attention, causal), part in table.groupby(["attention", "causal"], sort=False):
        last = part.sort_values("n", kind="stable").drop_duplicates("n").iloc[-1]
        formula, products = last["forward_flops"], last["matrix_product_flops"]
        has_formula = last["flops_counted"] == "formula"
        unseen = f"{100 * (1 - products / formula):.2g} %" if products <= formula else "none"
        rows.append(
            {
                "attention": f"{attention}, causal" if causal == "yes" else attention,
                "C": f"{last['dim']:,}",
                "N": f"{last['n']:,}",
                "GFLOP by formula": f"{formula / 1e9:.4g}" if has_formula else "no formula",
                "by torch's counter": f"{products / 1e9:.4g}",
                "unseen": unseen if has_formula else "unknown",
                "counted as 0": ", ".join(last["not_counted"].split()) or "nothing",
            }
        )
    return pd.DataFrame(rows)
