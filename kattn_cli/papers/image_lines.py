"""A table of images with a line for each mechanism: ours, the paper's, and the difference from the baseline in both."""

from __future__ import annotations

import math

import pandas as pd

from kattn_cli.papers.image_part import ImagePart
from kattn_cli.papers.paper_rows import baselines_first
from kattn_cli.papers.paper_sections import as_printed, from_high, signed
from kattn_cli.tables.frames import shared_folder

KEY = ["row", "metric", "measured"]
METRICS = {
    "top1": "top-1",
    "top5": "top-5",
    "mce": "mCE",
    "aupr": "AUPR",
    "mean_accuracy": "mean accuracy",
    "mean_iou": "mean IoU",
    "seconds_per_1k_steps": "s for 1,000 steps",
    "memory_gb": "peak memory (GB)",
}


def by_label(part: ImagePart, table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Headings and rows; differences are those of the first number."""
    places: list[tuple[str, str, str]] = list(table[KEY].drop_duplicates().itertuples(index=False, name=None))
    labels = baselines_first(table)
    folder = shared_folder(labels)
    base = next(iter(part.baselines(str(table["model"].iloc[0]))))
    columns = ["mechanism"]
    for row, metric, measured in places:
        columns += [f"{measured} {METRICS[metric]}" if metric in ("top1", "top5") else METRICS[metric], f"paper, {row}"]
    columns[3:3] = [f"less {base.partition(' ')[0]}", "paper"]
    rows = []
    for label in labels:
        mine = table[table["label"] == label].set_index(KEY)
        cells = [label.removeprefix(folder)]
        for place in places:
            one = mine.loc[place] if place in mine.index else None
            cells += ["", ""] if one is None else [from_high(one["mean"], one["high"]), _printed(one["paper"])]
        cells[3:3] = _differences(mine.loc[places[0]]) if places[0] in mine.index else ["", ""]
        rows.append([*cells, str(mine["seeds"].max())])
    return [*columns, "seeds"], rows


def _differences(one: pd.Series) -> list[str]:
    """Ours and the paper's."""
    ours, theirs = "", _printed(one["paper_difference"])
    if isinstance(one["verdict"], str):
        ours = f"{signed(from_high(one['difference'], one['difference_high']))} ({one['verdict']})"
    return [ours, signed(theirs) if theirs else ""]


def _printed(number: float) -> str:
    return "" if math.isnan(number) else as_printed(number, 1)
