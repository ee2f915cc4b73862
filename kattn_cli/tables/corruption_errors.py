"""Errors under corruption, from the rows of ``eval.csv`` (Hendrycks & Dietterich, 2019, §4). Never imports torch.

The error of a type is its top-1 error averaged over the five severities; the corruption error CE is that error divided
by a reference model's, and mCE the mean of CE over types. The mean error is another number: no reference is in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from kattn_cli.tables.measurements import of_one_checkpoint, settings

SEVERITIES = frozenset(range(1, 6))
ALL_TYPES = 15
"""As many types of corruption as ImageNet-C has."""

_SETTING = ["checkpoint", "parameters", "seed", "images"]
_OF_ONE = ["split", "corruption", "severity", "textures", "class"]
"""What is another for each row of one setting; frost alone has photographs."""


@dataclass(frozen=True)
class Summary:
    """In %, nan where there is nothing to average; ``types`` and ``mce_types`` say how many types each mean is over."""

    mean_error: float
    types: int
    mce: float
    mce_types: int
    reference: str


def errors_by_type(rows: pd.DataFrame) -> pd.Series:
    """Return the error of each type in %, by its name, over those of its rows that were corrupted.

    Args:
        rows: ``corruption``, ``severity``, ``top1`` in %; one row for each type and severity.
    """
    corrupted = rows[rows["severity"] > 0].astype({"corruption": object})
    errors = {
        str(name): 100 - part["top1"].mean()
        for name, part in corrupted.groupby("corruption", sort=False)
        if set(part["severity"]) >= SEVERITIES
    }
    return pd.Series(errors, dtype=float)


def corruption_errors(
    rows: pd.DataFrame, reference: str = "", reference_errors: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Return a row for each type of which all five severities were measured.

    Columns: ``corruption``, ``error`` in %, ``reference`` (its name), ``reference_error`` in %, ``corruption_error``
    (their ratio in %). The last three are empty where the reference has no error of that type, or one of 0.

    Args:
        rows: see :func:`errors_by_type`.
        reference: what the reference is called.
        reference_errors: its error of each type in %.
    """
    table = []
    for name, error in errors_by_type(rows).items():
        base = (reference_errors or {}).get(str(name)) or math.nan
        row = {"corruption": name, "error": error, "reference": "" if math.isnan(base) else reference}
        table.append({**row, "reference_error": base, "corruption_error": 100 * error / base})
    columns = ["corruption", "error", "reference", "reference_error", "corruption_error"]
    return pd.DataFrame(table, columns=columns)


def summary(table: pd.DataFrame) -> Summary:
    """Return the mean error and mCE of a table by :func:`corruption_errors`."""
    compared = table.dropna(subset="corruption_error")
    return Summary(
        mean_error=float(table["error"].mean()) if len(table) else math.nan,
        types=len(table),
        mce=float(compared["corruption_error"].mean()) if len(compared) else math.nan,
        mce_types=len(compared),
        reference=str(compared["reference"].iloc[0]) if len(compared) else "",
    )


def measured_together(table: pd.DataFrame, split: str = "test") -> pd.DataFrame:
    """Return the corrupted rows of one run's ``eval.csv`` that belong together, and the clean one of these images.

    They share checkpoint, parameters, seed and number of images, and whatever else a measurement is identified by. Of
    several such settings it is one of the best weights, where these were measured, over the most images, then of the
    most rows, then the last of the table. Rows of weights that are no longer there do not count: those of the last row
    of a checkpoint are. Of frost with several photographs, the last of the table. Nothing, in a file of an earlier
    version.
    """
    if table.empty or not {"corruption", *_SETTING} <= {*table}:
        return table.iloc[:0]
    setting = [*_SETTING, *settings(table, [*_SETTING, *_OF_ONE])]
    filled = table.assign(
        **{name: table[name].astype(object).fillna("") for name in (*setting, "weights", "corruption")}
    )
    newest = filled.groupby("checkpoint", sort=False)["weights"].transform("last")
    current = of_one_checkpoint(filled[filled["weights"] == newest])
    corrupted = current[(current["corruption"] != "") & (current["split"] == split)]
    if corrupted.empty:
        return table.iloc[:0]
    order = corrupted.reset_index().groupby(setting)["index"].agg(["count", "max"]).reset_index()
    best = order.sort_values(["images", "count", "max"]).iloc[-1]
    same = (corrupted[setting] == best[setting]).all(axis=1)
    of_setting = corrupted[same]
    if "textures" in of_setting:
        photographs = of_setting.groupby("corruption")["textures"].transform(lambda found: found.fillna("").iloc[-1])
        of_setting = of_setting[of_setting["textures"].fillna("") == photographs]
    clean = current[
        (current["corruption"] == "")
        & (current["split"] == split)
        & (current["images"] == best["images"])
        & (current["checkpoint"] == best["checkpoint"])
    ]
    return table.loc[[*clean.index[-1:], *of_setting.index]]
