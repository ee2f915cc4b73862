"""Runs under attack, side by side: accuracy over seeds, and paired differences from the first of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kattn_cli.console import console, print_wide
from kattn_cli.runs.csv_rows import read_frame
from kattn_cli.runs.run import Run
from kattn_cli.statistics.crossed import crossed
from kattn_cli.statistics.verdict import Decision, Question, Verdict, decide
from kattn_cli.tables.frames import attack_frame, clean_where_attacked, over_seeds
from kattn_cli.tables.text import mean_and_half, write_frame

Answers = dict[str, dict[int, NDArray[np.bool_]]]
"""Label → seed → whether each image was classified rightly."""


def attack_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row a measurement and label: ``name, label, mean, low, high, half, seeds, images``, in % of images.

    The intervals are 95 %: Student-t over seeds, Wilson for a single one.

    Args:
        table: the rows of :func:`~kattn_cli.tables.frames.attack_frame`.
    """
    clean = clean_where_attacked(table)
    rows = over_seeds(pd.concat([clean, table]), ("name", "label"), "top1")
    rows["half"] = (rows["high"] - rows["low"]) / 2
    images = pd.concat([clean, table]).groupby(["name", "label"])["images"].max()
    rows["images"] = [int(images[name, label]) for name, label in zip(rows["name"], rows["label"], strict=True)]
    return rows


def differences(table: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Return each label's accuracy less the first's, on the same images, clean and under each measurement.

    Columns: ``name, label, against, difference, low, high, p_value, p_corrected, seeds, images, verdict``; the model is
    :func:`~kattn_cli.statistics.crossed.crossed`, and the labels of one measurement are a family. There is no margin,
    so nothing is called equivalent. Measurements that kept no images are left out.
    """
    if "per_image" not in table:
        return pd.DataFrame()
    kept = table.dropna(subset="per_image")
    rows = []
    clean = clean_where_attacked(kept)
    for name in [*dict.fromkeys(clean["name"]), *dict.fromkeys(kept["name"])]:
        of_clean = clean[clean["name"] == name]
        answers = _answers(kept[kept["name"] == name], "top1") if of_clean.empty else _answers(of_clean, "clean")
        base = answers.get(labels[0], {})
        compared = [label for label in labels[1:] if _comparable(answers.get(label, {}), base)]
        decisions = decide([Question(crossed(answers[label], base)) for label in compared])
        rows += [_row(name, label, labels[0], found) for label, found in zip(compared, decisions, strict=True)]
    return pd.DataFrame(rows)


def print_attacked(runs: Sequence[Run], folder: Path | None, run_as: str = "", gradient_as: str = "") -> pd.DataFrame:
    """Print both; the differences go to ``attack_differences.csv`` in ``folder``, where there are several labels.

    Args:
        folder: None where they are not to be kept.
        run_as, gradient_as: see :func:`~kattn_cli.tables.frames.frame`.
    """
    table = attack_frame(runs, run_as, gradient_as)
    labels = _labels(runs, table)
    names = [*dict.fromkeys(clean_where_attacked(table)["name"]), *dict.fromkeys(table["name"])]
    accuracy = attack_table(table)
    cells = {
        (name, label): mean_and_half(mean, half)
        for name, label, mean, half in zip(*(accuracy[c] for c in ("name", "label", "mean", "half")), strict=True)
    }
    images = ", ".join(f"{count:,}" for count in sorted(accuracy["images"].unique()))
    how = f"{f', run as {run_as}' if run_as else ''}{f', by the gradient of {gradient_as}' if gradient_as else ''}"
    console.print(f"\nTop-1 in % of {images} test images{how}, ± half of the 95 % interval\n")
    rows = [[name, *(cells.get((name, label), "") for label in labels)] for name in names]
    if len(labels) == 1:
        print_wide(["attack", *labels], rows)
        return pd.DataFrame()
    apart = differences(table, labels)
    shown = {} if apart.empty else {(row["name"], row["label"]): _formatted(row) for _, row in apart.iterrows()}
    if len(labels) == 2 and shown:
        rows = [[*row, shown.get((row[0], labels[1]), "")] for row in rows]
        print_wide(["attack", *labels, "difference (paired, 95 %)"], rows)
    else:
        print_wide(["attack", *labels], rows)
        if shown:
            console.print(f"\nDifference from {labels[0]} in points, paired, 95 %\n")
            rows = [[name, *(shown.get((name, label), "") for label in labels[1:])] for name in names]
            print_wide(["attack", *labels[1:]], rows)
    if shown and folder:
        write_frame(folder / "attack_differences.csv", apart)
    return apart


def _labels(runs: Sequence[Run], table: pd.DataFrame) -> list[str]:
    """Return the labels in the order of the runs."""
    of_folder = dict(zip(table["folder"], table["label"], strict=True))
    return list(dict.fromkeys(of_folder[str(run.folder)] for run in runs if str(run.folder) in of_folder))


def _answers(part: pd.DataFrame, column: str) -> Answers:
    answers: Answers = {}
    for label, seed, folder, images in zip(
        *(part[c] for c in ("label", "run_seed", "folder", "per_image")), strict=True
    ):
        path = Path(folder) / str(images)
        if path.exists():
            answers.setdefault(label, {})[int(seed)] = read_frame(path).sort_values("image")[column].to_numpy(bool)
    return answers


def _comparable(first: Mapping[int, NDArray[np.bool_]], second: Mapping[int, NDArray[np.bool_]]) -> bool:
    """Return whether there is a seed of both, and all such seeds are of the same number of images."""
    sizes = {len(part[seed]) for seed in set(first) & set(second) for part in (first, second)}
    return len(sizes) == 1 and sizes != {0}


def _row(name: str, label: str, against: str, found: Decision) -> dict[str, object]:
    effect, (low, high) = found.question.effect, found.interval
    numbers = {"difference": effect.estimate, "low": low, "high": high, "p_value": effect.p_apart()}
    numbers["p_corrected"] = found.p_apart
    counts = {"seeds": effect.seeds, "images": effect.images, "verdict": found.verdict.value}
    return {"name": name, "label": label, "against": against, **numbers, **counts}


def _formatted(row: pd.Series) -> str:
    ends = "no interval" if math.isnan(row["low"]) else f"{row['low']:+.1f}, {row['high']:+.1f}"
    interval = f"{row['difference']:+.1f} [{ends}]"
    return interval if row["verdict"] == Verdict.undecided.value else f"{interval} {row['verdict']}"
