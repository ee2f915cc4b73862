"""What the tables of costs say: multiples of one model's, whether decoding stays flat, how solvers compare."""

from __future__ import annotations

import math

import pandas as pd

FLAT = 0.05
"""By what share of that behind the shortest context a cost may differ and still be called flat."""
DUAL, RANDOMISED = "dual L-BFGS", "randomised SVD"
SOLVERS = ("full", "Lanczos", RANDOMISED, f"{RANDOMISED}, defaults", DUAL)
PROBLEM = ["task", "n", "kernel", "components", "tolerance"]
_SAME_SETTING = ["pass", "dtype", "batch"]


def model_ratios(costs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with their costs as multiples of the first model's, in its first version, in the same setting.

    The setting is pass, precision and batch, and for models measured at several lengths the length. ``memory_mib`` is
    held and peak memory together, as the papers' tables have it.
    """
    table = costs.assign(memory_mib=costs["held_mib"] + costs["peak_mib"])
    rows = []
    for _, row in table.iterrows():
        base = model_baseline(table, row)
        found = {"time_ratio": math.nan, "memory_ratio": math.nan}
        if base is not None:
            found["time_ratio"] = row["milliseconds_per_sample"] / base["milliseconds_per_sample"]
            found["memory_ratio"] = row["memory_mib"] / base["memory_mib"]
        rows.append({**row, **found})
    return pd.DataFrame(rows)


def model_baseline(table: pd.DataFrame, row: pd.Series) -> pd.Series | None:
    """Return the row that :func:`model_ratios` divides a row by; None where there is none in its setting."""
    same = table[(table[_SAME_SETTING] == row[_SAME_SETTING]).all(axis=1) & (table["model"] == table["model"].iloc[0])]
    same = same[same["version"] == table["version"].iloc[0]]
    if len(same) > 1:
        same = same[same["n"] == row["n"]]
    return same.iloc[0] if len(same) and same["status"].iloc[0] == "ok" else None


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
