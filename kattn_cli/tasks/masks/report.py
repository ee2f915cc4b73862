"""``kattn eval`` of segmentation runs, from the runs to what is printed: the RPC-Attention paper's Table 6, ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from kattn_cli.console import console, print_wide
from kattn_cli.errors import stoppable
from kattn_cli.figures.segmentation import Predicted, draw_sheet
from kattn_cli.runs.run import Run
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.tables.frames import frame
from kattn_cli.tables.text import mean_and_half
from kattn_cli.tables.values import segmentation_frame, segmentation_summary
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.tasks.masks.evaluation import SEGMENTATION_CSV, evaluate_segmenters
from kattn_cli.tasks.task import Asked

SHOWN = 8
"""Images on a sheet."""
COLUMNS = {
    "mean_accuracy": "mean acc.",
    "mean_iou": "mean IoU",
    "corrupted_mean_accuracy": "corrupted mean acc.",
    "corrupted_mean_iou": "corrupted mean IoU",
}


def evaluate_and_print(runs: Sequence[Run], asked: Asked, corruptions: Corruptions | None) -> None:
    """Measure each run, draw a sheet of each where that is asked for, and print their table."""
    with stoppable(
        f"what was measured so far is in each run's {SEGMENTATION_CSV}; the same command goes on from there"
    ):
        evaluate_segmenters(runs, asked, corruptions)
    if asked.save_images:
        for run in runs:
            draw_run(run, asked)
    if asked.split == "test":
        found = segmentation_summary(segmentation_frame(frame(runs, SEGMENTATION_CSV)))
        print_segmentation(found)
        if corruptions and not found["types"].any():
            console.print("means under corruption: left out, since no type has all five severities yet\n")
    else:
        for run in runs:
            _print_last(run)


@torch.no_grad()
def draw_run(run: Run, asked: Asked) -> None:
    """Draw ``figures/segmentation.png`` and ``.pdf`` of a run, images from all over the split; its path is printed."""
    opened = asked.opener.open(run)
    data = opened.data
    split = data.splits[asked.split].to(asked.device)
    chosen = torch.arange(min(SHOWN, len(split))) * len(split) // min(SHOWN, len(split))
    images, masks = split.take(chosen)
    predicted = opened.model(images).argmax(1)
    pictures = [
        Predicted(image.permute(1, 2, 0).cpu().numpy(), mask.cpu().numpy(), one.cpu().numpy())
        for image, mask, one in zip(images, masks, predicted, strict=True)
    ]
    caption = f"{data.name}, {asked.split} split, the central {data.image_size} × {data.image_size} pixels"
    console.print(draw_sheet(pictures, data.class_names, run.folder / "figures", caption))


def print_segmentation(found: pd.DataFrame) -> None:
    """Print a line for each label, and how each differs from the first one, paired by seed.

    Args:
        found: of :func:`~kattn_cli.tables.values.segmentation_summary`.
    """
    if found.empty:
        return
    images = ", ".join(f"{count:,}" for count in sorted(found["images"].unique()))
    types = ", ".join(str(count) for count in sorted(set(found["types"]) - {0}))
    corrupted = f"; corrupted: mean over {types} types × 5 severities" if types else ""
    console.print(
        f"\nSegmentation of {images} test images in %{corrupted}; mean ± half of the 95 % interval over seeds\n"
    )
    columns = {name: title for name, title in COLUMNS.items() if found[name].notna().any()}
    labels = list(dict.fromkeys(found["label"]))
    by_label = {label: found[found["label"] == label] for label in labels}
    lines = [
        [label, *(_cell(by_label[label][name].tolist()) for name in columns), str(len(by_label[label]))]
        for label in labels
    ]
    print_wide(["run", *columns.values(), "seeds"], lines)
    if len(labels) > 1:
        lines = [
            [label, *(_cell(differences(by_label[labels[0]], by_label[label], name), sign="+") for name in columns)]
            for label in labels[1:]
        ]
        console.print(f"\nMore than {labels[0]}, in points, paired by seed\n")
        print_wide(["run", *columns.values()], lines)
    console.print()


def differences(first: pd.DataFrame, second: pd.DataFrame, column: str) -> list[float]:
    """Return by how much the second's ``column`` is above the first's, for each seed of both with as many images."""
    both = first.merge(second, on=["run_seed", "images"], suffixes=("_first", "_second"))
    difference = both[f"{column}_second"] - both[f"{column}_first"]
    return [float(one) for one in difference if not np.isnan(one)]


def _cell(values: Sequence[float], sign: str = "") -> str:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return ""
    return mean_and_half(*mean_interval(known), 2, flags=sign)


def _print_last(run: Run) -> None:
    row = frame([run], SEGMENTATION_CSV).iloc[-1]
    measures = ", ".join(f"{COLUMNS[name]} {row[name]:.2f} %" for name in ("mean_accuracy", "mean_iou"))
    console.print(f"{run.folder}: {row['split']}, {int(row['images']):,} images: {measures}")
