"""Costs: of a group's models, and the tables that belong to no run, each as a part of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kattn_cli.report.groups import Group
from kattn_cli.report.page import Block, Part, Picture
from kattn_cli.runs.run import Run
from kattn_cli.tables.complexity import exponents, not_counted, shortfalls, summary
from kattn_cli.tables.costs import FLAT, decoding_verdicts, model_ratios, solver_ratios
from kattn_cli.tables.frames import frame
from kattn_cli.tables.text import Table, bullets, escaped, listed, short

SPEEDS = ("images_per_second", "sequences_per_second", "tokens_per_second", "windows_per_second")


@dataclass(frozen=True)
class Flops:
    """Operations of one sample's forward pass; ``why_not``: why they could not be counted."""

    count: float = math.nan
    why_not: str = ""


def cost_part(group: Group, flops: Mapping[str, Flops]) -> Part:
    """Return the part with what a group's models cost: a row for each label, means over seeds.

    Args:
        flops: by label; of a label that is not there, nothing is said.
    """
    by_folder = _speeds(group.runs)
    unknown = "", math.nan
    speeds = {
        label: [by_folder.get(str(run.folder), unknown) for run in runs] for label, runs in group.by_label.items()
    }
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
    """Return a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for label, one in flops.items():
        if one.why_not:
            reasons.setdefault(one.why_not, []).append(label)
    return [
        f"Operations not counted of {escaped(listed(labels, 6))}: {escaped(why)}" for why, labels in reasons.items()
    ]


def _speeds(runs: Sequence[Run]) -> dict[str, tuple[str, float]]:
    """Return by folder the name of the column, and its median over the epochs of training."""
    table = frame(runs, "metrics.csv")
    names = [column for column in SPEEDS if column in table]
    if not names:
        return {}
    rows = table[table["split"] == "train"] if "split" in table else table
    medians = rows.groupby("folder")[names].median().to_dict("index")
    return {
        str(folder): next(
            ((str(name), value) for name, value in of_run.items() if not math.isnan(value)), ("", math.nan)
        )
        for folder, of_run in medians.items()
    }


def _mean(values: Any) -> float:
    known: Sequence[float] = [float(value) for value in values if value is not None and not pd.isna(value)]
    return sum(known) / len(known) if known else math.nan


SIGNS = {"at least": "≥", "at most": "≤"}


def cost_table_part(kind: str, name: str, stem: str, table: pd.DataFrame, pictures: Sequence[Picture]) -> Part:
    """Return the part of a table by :func:`~kattn_cli.runs.cost_table.read_cost_table`.

    Args:
        name: in the heading; ``stem``: of its files.
    """
    return Part(f"Costs: {name}", [*PARTS[kind](stem, table), *pictures])


def _complexity(stem: str, costs: pd.DataFrame) -> list[Block]:
    blocks: list[Block] = []
    fitted = summary(costs, exponents(costs))
    if len(fitted):
        caption = (
            "Costs at the largest size of each series, and the exponents of time and memory in N with their 95 % "
            "intervals, fitted to the upper half of the sizes. Single measurements on one machine."
        )
        blocks.append(_table(f"{stem}-complexity", caption, fitted, 2))
    if lines := shortfalls(costs):
        blocks.append(bullets([escaped(line) for line in lines]))
    if {"forward_flops", "matrix_product_flops"} <= set(costs) and len(counted := not_counted(costs)):
        caption = "Operations of a forward pass of all samples, by formula and as torch's counter sees them."
        blocks.append(_table(f"{stem}-operations", caption, counted, 1, ["counted as 0"]))
    return blocks


def _models(stem: str, costs: pd.DataFrame) -> list[Block]:
    ratios = model_ratios(costs)
    shown = pd.DataFrame(
        {
            "model": [_version(*pair) for pair in zip(ratios["model"], ratios["version"], strict=True)],
            "pass": ratios["pass"],
            "N": ratios["n"].map(short),
            "batch": ratios["batch"].map(short),
            "ms a sample": ratios["milliseconds_per_sample"].map(short),
            "time ×": ratios["time_ratio"].map(short),
            "MiB": ratios["memory_mib"].map(short),
            "memory ×": ratios["memory_ratio"].map(short),
            "GFLOP a sample": (ratios["forward_flops_per_sample"] / 1e9).map(short),
            "status": ratios["status"],
        }
    )
    caption = "Costs of whole models; ×: of the first model in the same setting. Single measurements on one machine."
    return [_table(f"{stem}-models", caption, shown, 2, ["status"])]


def _decoding(stem: str, costs: pd.DataFrame) -> list[Block]:
    found = decoding_verdicts(costs)
    if found.empty:
        return []
    shown = pd.DataFrame(
        {
            "attention": found["attention"],
            "contexts": [f"{a:,} … {b:,}" for a, b in zip(found["from_context"], found["to_context"], strict=True)],
            "time": found["time"],
            "time ×": _interval(found, "time_ratio", "time_low", "time_high"),
            "memory kept": found["memory"],
            "kept ×": found["state_ratio"].map(short),
            "peak ×": found["peak_ratio"].map(short),
        }
    )
    caption = (
        "Decoding: the cost of one more token behind the longest context over that behind the shortest, with its 95 % "
        f"interval; flat: within {100 * FLAT:.0f} %."
    )
    return [_table(f"{stem}-decoding", caption, shown, 2, ["time", "memory kept"])]


def _benchmark(stem: str, found: pd.DataFrame) -> list[Block]:
    figures = found.fillna({"says": "", "holds": ""})
    shown = pd.DataFrame(
        {
            "figure of": [f"{one.item}: {one.says}" for one in figures.itertuples()],
            "figure": figures["value"].map(short),
            "95 % interval": _interval(figures, "", "low", "high"),
            "bound": [
                "" if pd.isna(one.bound) else f"{SIGNS.get(str(one.relation), '')} {one.bound:.3g}"
                for one in figures.itertuples()
            ],
            "holds": figures["holds"].astype(str),
        }
    )
    caption = "The benchmark of our operators: figures of one machine, beside the bounds that they are to keep."
    return [_table(f"{stem}-benchmark", caption, shown, 1, ["holds"])]


def _kernel_pca(stem: str, times: pd.DataFrame) -> list[Block]:
    found = solver_ratios(times)
    shown = pd.DataFrame(
        {
            "solver": found["solver"],
            "task": found["task"],
            "kernel": found["kernel"],
            "N": found["n"].map(short),
            "seconds": _interval(found, "seconds", "seconds_low", "seconds_high"),
            "time / dual's": _interval(found, "ratio", "ratio_low", "ratio_high"),
            "variance missed": found["accuracy"].map("{:.1e}".format),
            "within tolerance": [f"{100 * share:.0f} %" for share in found["reached"]],
        }
    )
    rounds = short(float(found["rounds"].max()))
    caption = f"Kernel PCA: time of each solver and as a multiple of the dual's, median and range over {rounds} rounds."
    return [_table(f"{stem}-kernel-pca", caption, shown, 3)]


PARTS: Mapping[str, Callable[[str, pd.DataFrame], list[Block]]] = {
    "complexity": _complexity,
    "models": _models,
    "decoding": _decoding,
    "benchmark": _benchmark,
    "kernel-pca": _kernel_pca,
}


def _table(name: str, caption: str, shown: pd.DataFrame, names: int, words: Sequence[str] = ()) -> Table:
    rows = shown.fillna("").astype(str).to_numpy().tolist()
    return Table(name, caption, list(map(str, shown)), rows, names, words)


def _interval(table: pd.DataFrame, middle: str, low: str, high: str) -> list[str]:
    """Return ``1.2 [1.1, 1.4]`` of each row, or its ends alone without a ``middle``."""
    cells = []
    for _, row in table.iterrows():
        ends = "" if pd.isna(row[low]) or row[low] == row[high] else f"[{short(row[low])}, {short(row[high])}]"
        cells.append(f"{short(row[middle]) if middle else ''} {ends}".strip())
    return cells


def _version(model: str, version: str) -> str:
    return model if version == "fast" else f"{model} ({version})"
