"""``kattn eval``: accuracy, loss and calibration on a split, the test set by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kattn_cli.analysis.statistics import wilson_interval
from kattn_cli.commands.loading import open_run
from kattn_cli.console import progress_bar
from kattn_cli.data import SplitName
from kattn_cli.device import device_name
from kattn_cli.provenance import provenance
from kattn_cli.results import Run, replace_rows
from kattn_cli.training.evaluate import evaluate

EVAL_CSV = "eval.csv"
KEY = ("split", "severity", "checkpoint")


def evaluate_runs(runs: Sequence[Run], device: torch.device, checkpoint: str, split: SplitName) -> list[dict[str, Any]]:
    """Evaluate each run; the rows written to each run's ``eval.csv``."""
    rows = []
    with progress_bar("run") as bar:
        task = bar.add_task("eval", total=len(runs), count="", note="")
        for number, run in enumerate(runs, 1):
            record = provenance(device_name(device))
            opened = open_run(run, device, checkpoint)
            result = evaluate(opened.model, opened.data.splits[split].to(device))
            low, high = wilson_interval(result.top1 / 100 * result.images, result.images)
            row = {
                "split": opened.data.chosen_on if split == "validation" else split,
                "severity": 0,
                "images": result.images,
                "top1": result.top1,
                "top1_low": 100 * low,
                "top1_high": 100 * high,
                "top5": result.top5,
                "loss": result.loss,
                "ece": result.ece,
                "checkpoint": opened.checkpoint,
            }
            replace_rows(run.folder / EVAL_CSV, [row], KEY)
            run.add_measurement(record)
            rows.append(row)
            bar.update(task, completed=number, count=f"{number}/{len(runs)}", note=opened.run.label)
    return rows
