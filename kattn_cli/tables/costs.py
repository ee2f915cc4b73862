"""What the tables of costs say: whether decoding stays flat, and how solvers of kernel PCA compare."""

from __future__ import annotations

import pandas as pd

FLAT = 0.05
"""By what share of that behind the shortest context a cost may differ and still be called flat."""
DUAL, RANDOMISED = "dual L-BFGS", "randomised SVD"
SOLVERS = ("full", "Lanczos", RANDOMISED, f"{RANDOMISED}, defaults", DUAL)
PROBLEM = ["task", "n", "kernel", "components", "tolerance"]


def decoding_verdicts(costs: pd.DataFrame) -> pd.DataFrame:
    """Return for each mechanism how its costs behind the longest context compare with those behind the shortest.

    ``time_ratio`` with its interval, ``state_ratio`` and ``peak_ratio`` are of the longest context. ``time`` judges all
    contexts: ``flat`` if every interval lies within :data:`FLAT`, ``not flat`` if one lies outside, else ``cannot be
    told``. ``memory`` judges what is kept: ``flat`` or ``not flat``.
    """
    rows = []
    for attention, part in costs[costs["status"] == "ok"].groupby("attention", sort=False):
        part = part.sort_values("context")
        first, last, rest = part.iloc[0], part.iloc[-1], part.iloc[1:]
        if rest.empty:
            continue
        rows.append(
            {
                "attention": attention,
                "from_context": first["context"],
                "to_context": last["context"],
                "time": _time(rest),
                "time_ratio": last["ratio"],
                "time_low": last["ratio_low"],
                "time_high": last["ratio_high"],
                "memory": "flat" if _within(part["state_mib"] / first["state_mib"]) else "not flat",
                "state_ratio": last["state_mib"] / first["state_mib"],
                "peak_ratio": last["peak_mib"] / first["peak_mib"],
            }
        )
    return pd.DataFrame(rows)


def _time(rest: pd.DataFrame) -> str:
    low, high = rest["ratio_low"].astype(float), rest["ratio_high"].astype(float)
    if _within(low) and _within(high):
        return "flat"
    return "not flat" if (low > 1 + FLAT).any() or (high < 1 - FLAT).any() else "cannot be told"


def _within(ratios: pd.Series) -> bool:
    return bool(((ratios - 1).abs() <= FLAT).all())


def solver_ratios(times: pd.DataFrame) -> pd.DataFrame:
    """Return for each problem and solver: seconds, accuracy, and the ratio of its time to the dual's.

    Medians over rounds, ``_low`` and ``_high`` their range; a ratio is of one round. ``reached``: the share of rounds
    in which the accuracy was within the tolerance.
    """
    dual = times[times["solver"] == DUAL].set_index([*PROBLEM, "round"])["seconds"].rename("dual")
    joined = times.join(dual, on=[*PROBLEM, "round"])
    joined["ratio"] = joined["seconds"] / joined["dual"]
    joined["reached"] = joined["accuracy"] <= joined["tolerance"]
    rows = []
    for key, part in joined.groupby([*PROBLEM, "solver"], sort=False):
        row = dict(zip([*PROBLEM, "solver"], key, strict=True))
        for column in ("seconds", "ratio"):
            values = part[column]
            row |= {column: values.median(), f"{column}_low": values.min(), f"{column}_high": values.max()}
        row |= {"accuracy": part["accuracy"].median(), "reached": part["reached"].mean(), "rounds": len(part)}
        rows.append(row)
    table = pd.DataFrame(rows)
    place = table.groupby(PROBLEM, sort=False).ngroup() * len(SOLVERS) + table["solver"].map(SOLVERS.index)
    return table.iloc[place.argsort(kind="stable")].reset_index(drop=True)
