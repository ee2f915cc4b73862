"""Which rows of ``segmentation.csv`` belong together, and what they make of the RPC-Attention paper's Table 6."""

from __future__ import annotations

from typing import Any

import pandas as pd

from kattn_cli.tables.corruption_errors import SEVERITIES, measured_together

MEASURES = ("mean_accuracy", "mean_iou")


def segmentation_frame(measured: pd.DataFrame) -> pd.DataFrame:
    """Of rows of several runs' ``segmentation.csv``, those of the test set that belong together, run by run.

    The clean row, severity 0, and those of the types of which all five severities were measured. Of a run without such
    types the clean row of the most images, the last of these.
    """
    if measured.empty:
        return measured
    parts = [_of_one_run(part) for _, part in measured.groupby(["label", "run_seed"], sort=False)]
    return pd.concat(parts, ignore_index=True)


def segmentation_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each label and seed of a :func:`segmentation_frame`.

    Columns ``label``, ``mechanism``, ``run_seed``, ``folder``, ``images``, ``mean_accuracy``, ``mean_iou`` of the
    clean images, ``corrupted_mean_accuracy``, ``corrupted_mean_iou``: means over types and severities, nan without
    any; ``types``.
    """
    found: list[dict[str, Any]] = []
    of_runs = rows.groupby(["label", "mechanism", "run_seed"], sort=False) if len(rows) else ()
    for (label, mechanism, seed), part in of_runs:
        clean, corrupted = part[part["severity"] == 0], part[part["severity"] > 0]
        if clean.empty:
            continue
        row = {"label": label, "mechanism": mechanism, "run_seed": seed, "folder": clean["folder"].iloc[-1]}
        row["images"] = int(clean["images"].iloc[-1])
        row |= {name: float(clean[name].iloc[-1]) for name in MEASURES}
        row |= {f"corrupted_{name}": corrupted[name].mean() for name in MEASURES}
        found.append({**row, "types": corrupted["corruption"].nunique()})
    return pd.DataFrame(found)


def _of_one_run(rows: pd.DataFrame) -> pd.DataFrame:
    test = rows[rows["split"] == "test"]
    together = measured_together(test)
    if together.empty:
        return test[test["severity"] == 0].sort_values("images", kind="stable").iloc[-1:]
    complete = together.groupby("corruption")["severity"].agg(set)
    names = [name for name, found in complete.items() if found >= SEVERITIES]
    return together[(together["severity"] == 0) | together["corruption"].isin(names)]
