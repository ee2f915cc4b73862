"""What the tables of runs on images hold, one row a number and seed, whichever paper it is to be laid beside."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pandas as pd

from kattn_cli.runs.run import Run
from kattn_cli.tables.corruption_errors import ALL_TYPES
from kattn_cli.tables.frames import attack_frame, clean_rows, errors_of_runs, frame
from kattn_cli.tables.segmentation import MEASURES, segmentation_frame, segmentation_summary
from kattn_cli.tables.training_costs import training_costs

COLUMNS = ["kind", "row", "metric", "measured", "label", "run_seed", "pair", "value", "folder"]
SHIFTED = {"IN-R": r"(imagenet|in)[-_ ]?r", "IN-A": r"(imagenet|in)[-_ ]?a"}
"""Folders of images of ImageNet's classes, by which the RPC paper gives accuracies and no AUPR."""
Numbers = Iterator[dict[str, Any]]


def image_values(runs: Sequence[Run], kinds: Collection[str]) -> pd.DataFrame:
    """One row for each number of these kinds, label and seed, with the columns :data:`COLUMNS`.

    ``kind``: ``clean``, ``shifted`` (IN-R, IN-A), ``ood`` (AUPR), ``corrupted`` (means over types), ``by_type``,
    ``attacked``, ``segmented``, ``costs``. ``row``: as the RPC paper names it. ``measured``: how it was measured, in
    words. Only what has the same ``pair`` can be compared: times and memory of one device.
    """
    evaluated, attacked = frame(runs, "eval.csv"), attack_frame(runs)
    clean = [*_clean(evaluated)]
    rows = [*clean, *_clean_where_attacked(attacked, {row["folder"] for row in clean}), *_folders(evaluated)]
    if {"corrupted", "by_type"} & {*kinds}:
        rows += _corrupted(evaluated, frame(runs, "corruption_errors.csv"))
    if "attacked" in kinds:
        rows += _attacked(attacked)
    if "segmented" in kinds:
        rows += segmented(runs)
    if "costs" in kinds:
        rows += _costs(runs)
    values = pd.DataFrame(rows, columns=COLUMNS).dropna(subset="value")
    return values[values["kind"].isin(list(kinds))]


def _number(one: pd.Series, kind: str, row: str, metric: str, measured: str, value: float) -> dict[str, Any]:
    of_run = {"label": one["label"], "run_seed": one["run_seed"], "folder": one["folder"]}
    return {"kind": kind, "row": row, "metric": metric, "measured": measured, "pair": "", "value": value, **of_run}


def _clean(table: pd.DataFrame) -> Numbers:
    if table.empty:
        return
    clean = clean_rows(table).sort_values("images", kind="stable")
    for _, one in clean.drop_duplicates(["label", "run_seed"], keep="last").iterrows():
        for metric in ("top1", "top5"):
            yield _number(one, "clean", "IN-1K", metric, "clean test set", one[metric])


def _clean_where_attacked(table: pd.DataFrame, known: set[str]) -> Numbers:
    """Of runs that were attacked and never evaluated, on the images that most attacks had."""
    if table.empty or "clean_top1" not in table:
        return
    of_others = table[~table["folder"].isin(known)].sort_values("images", kind="stable")
    for _, one in of_others.drop_duplicates(["label", "run_seed"], keep="last").iterrows():
        yield _number(one, "clean", "IN-1K", "top1", f"{one['images']} clean test images", one["clean_top1"])


def _folders(table: pd.DataFrame) -> Numbers:
    if "aupr" not in table:
        return
    for _, one in table.dropna(subset="aupr").iterrows():
        name = str(one["split"])
        row = next((row for row, pattern in SHIFTED.items() if re.fullmatch(pattern, name, re.IGNORECASE)), "")
        if row:
            yield _number(one, "shifted", row, "top1", name, one["top1"])
        else:
            yield _number(one, "ood", "IN-O", "aupr", f"OOD {name}", one["aupr"])


def _corrupted(evaluated: pd.DataFrame, compared: pd.DataFrame) -> Numbers:
    for together, errors in errors_of_runs(evaluated):
        one = together.iloc[-1]
        yield _number(one, "corrupted", "IN-C", "top1", "corrupted", 100 - errors.mean())
        for name, error in errors.items():
            yield _number(one, "by_type", str(name), "top1", "", 100 - error)
    if compared.empty:
        return
    known = compared.dropna(subset="corruption_error")
    for _, part in known.groupby("folder", sort=False):
        one = part.iloc[-1]
        against = f"corrupted, against {one['reference']}"
        yield _number(one, "corrupted", "IN-C", "mce", against, part["corruption_error"].mean())
    for _, one in known.iterrows():
        yield _number(one, "by_type", one["corruption"], "mce", "", one["corruption_error"])


def _attacked(table: pd.DataFrame) -> Numbers:
    """Of several ε of an attack the greatest, as the RPC paper reports it."""
    if table.empty:
        return
    same = ["folder", "attack", "norm", "epsilon_units", "targeted"]
    greatest = table.sort_values("epsilon", kind="stable").drop_duplicates(same, keep="last")
    for _, one in greatest.sort_index().iterrows():
        for metric in ("top1", "top5"):
            yield _number(one, "attacked", str(one["attack"]), metric, str(one["name"]), one[metric])


def segmented(runs: Sequence[Run]) -> Numbers:
    """Of segmenters: clean, and the mean over all types at all severities where all were measured."""
    for _, one in segmentation_summary(segmentation_frame(frame(runs, "segmentation.csv"))).iterrows():
        for metric in MEASURES:
            yield _number(one, "segmented", "ADE20K", metric, "clean test set", one[metric])
            if one["types"] == ALL_TYPES:
                yield _number(one, "segmented", "corrupted ADE20K", metric, "corrupted", one[f"corrupted_{metric}"])


def _costs(runs: Sequence[Run]) -> Numbers:
    for of in training_costs(runs):
        device = str(of.manifest.get("device"))
        for metric in ("seconds_per_1k_steps", "memory_gb"):
            number = _number(of.rows.iloc[-1], "costs", "training", metric, f"training on {device}", of.costs[metric])
            yield {**number, "pair": device}
