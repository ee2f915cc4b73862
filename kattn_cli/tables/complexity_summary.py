"""What ``kattn complexity`` prints: the largest size with its exponents, what did not go well, what was not counted."""

from __future__ import annotations

import math

import pandas as pd

from kattn_cli.tables.complexity import QUANTITIES, SETTING, completed, varying, words

BASELINE = "softmax"
NOT_CAUSAL = "no causal form"


def summary(costs: pd.DataFrame, fitted: pd.DataFrame) -> pd.DataFrame:
    """At the largest size of each series: time, memory, the time as a multiple of PyTorch's softmax; the exponents."""
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
    """A line for each way in which a series ended early or was not measured."""
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
    """Operations of each mechanism at its largest size, and what torch's counter leaves out of them.

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
