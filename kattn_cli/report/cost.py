"""What a group's models cost: parameters, operations, time, memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pandas as pd

from kattn_cli.report.groups import Group
from kattn_cli.report.page import Block, Part
from kattn_cli.runs.csv_rows import whole_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.text import Table, listed, short

SPEEDS = ("images_per_second", "sequences_per_second", "tokens_per_second", "windows_per_second")


@dataclass(frozen=True)
class Flops:
    """Of one sample's forward pass; ``why_not``: why they could not be counted."""

    count: float = math.nan
    why_not: str = ""


def cost_part(group: Group, flops: Mapping[str, Flops]) -> Part:
    """One row a label, means over seeds.

    Args:
        flops: by label; of a label that is not there, nothing is said.
    """
    speeds = {label: [_speed(run) for run in runs] for label, runs in group.by_label.items()}
    unit = next((name for one in speeds.values() for name, _ in one if name), SPEEDS[0]).removesuffix("_per_second")
    rows = []
    for label, runs in group.by_label.items():
        manifests = [run.manifest for run in runs]
        rows.append(
            {
                "label": label,
                "parameters": _mean(one.get("parameters") for one in manifests),
                "forward_flops_per_sample": flops.get(label, Flops()).count,
                "train_seconds": _mean(one.get("train_seconds") for one in manifests),
                "peak_memory_mib": _mean(one.get("peak_memory_mib") for one in manifests),
                f"{unit}_per_second": _mean(value for _, value in speeds[label]),
                "seeds": len(runs),
            }
        )
    data = pd.DataFrame(rows)
    titles = {
        "parameters": "parameters",
        "forward_flops_per_sample": "forward MFLOP a sample",
        "train_seconds": "training (s)",
        "peak_memory_mib": "peak memory (MiB)",
        f"{unit}_per_second": f"training {unit}/s",
    }
    known = [column for column in titles if data[column].notna().any()]
    if not known:
        return Part("Cost", ["The runs do not say what they cost."])
    scale = {"forward_flops_per_sample": 1e6}
    cells = [
        [str(row["label"]), *(short(row[column] / scale.get(column, 1)) for column in known)]
        for _, row in data.iterrows()
    ]
    caption = (
        f"{group.name}, cost: means over seeds. Operations are of a forward pass, a multiplication and an addition "
        "counting as two. Time, memory and speed are of the machine that trained, whatever else ran on it."
    )
    table = Table(f"{group.slug}-cost", caption, ["", *(titles[column] for column in known)], cells, data=data)
    return Part("Cost", [table, *_uncounted(flops)])


def _uncounted(flops: Mapping[str, Flops]) -> list[Block]:
    """One line for each reason."""
    reasons: dict[str, list[str]] = {}
    for label, one in flops.items():
        if one.why_not:
            reasons.setdefault(one.why_not, []).append(label)
    return [f"Operations not counted of {listed(labels, 6)}: {why}" for why, labels in reasons.items()]


def _speed(run: Run) -> tuple[str, float]:
    """The name of the column, and its median over the epochs of training."""
    text = whole_rows(run.folder / "metrics.csv").strip()
    table = pd.read_csv(StringIO(text)) if text else pd.DataFrame()
    name = next((column for column in SPEEDS if column in table), "")
    if not name:
        return "", math.nan
    rows = table[table["split"] == "train"] if "split" in table else table
    return name, float(rows[name].median())


def _mean(values: Any) -> float:
    known: Sequence[float] = [float(value) for value in values if value is not None and not pd.isna(value)]
    return sum(known) / len(known) if known else math.nan
