"""``kattn attack``: accuracy on the test set under attack."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from kattn_cli.analysis.statistics import wilson_interval
from kattn_cli.attacks import ATTACKS, Attack
from kattn_cli.commands.loading import OpenRun, open_run
from kattn_cli.console import progress_bar
from kattn_cli.data import Split
from kattn_cli.device import device_name
from kattn_cli.provenance import provenance
from kattn_cli.results import Run, replace_rows
from kattn_cli.training.evaluate import topk_correct
from kattn_cli.training.seed import Stream, generator

ATTACKS_CSV = "attacks.csv"
KEY = (
    "attack",
    "norm",
    "epsilon",
    "epsilon_units",
    "steps",
    "step_size",
    "restarts",
    "seed",
    "images",
    "checkpoint",
)
BATCH = 256
ROUNDING = 1e-6
"""How far float32 may round a pixel beyond its ε-ball before we call it a bug."""


def attack_runs(
    runs: Sequence[Run],
    attacks: Sequence[str],
    epsilons: Sequence[float],
    *,
    device: torch.device,
    limit: int | None,
    seed: int,
    checkpoint: str,
) -> None:
    """Attack each run with each attack at each ε; rows go to each run's ``attacks.csv`` as they are measured."""
    with progress_bar("ε") as bar:
        for run in runs:
            record = provenance(device_name(device))
            opened = open_run(run, device, checkpoint)
            opened.model.requires_grad_(False)
            split = opened.data.splits["test"].first(limit).to(device)
            clean = _clean_top1(opened, split)
            plan = [(name, epsilon) for name in attacks for epsilon in epsilons]
            task = bar.add_task(f"{run.label}/{run.seed}", total=len(plan), count="", note="")
            for number, (name, epsilon) in enumerate(plan, 1):
                row = {**_measure(opened, name, split, epsilon, seed), "clean_top1": clean}
                replace_rows(run.folder / ATTACKS_CSV, [row], KEY)
                note = f"{name} {255 * epsilon:.3g}/255: top-1 {row['top1']:.1f}"
                bar.update(task, completed=number, count=f"{number}/{len(plan)}", note=note)
            run.add_measurement(record)


@torch.no_grad()
def _clean_top1(opened: OpenRun, split: Split) -> float:
    correct = [topk_correct(opened.model(images), labels, 1) for images, labels in split.batches(BATCH)]
    return 100 * torch.cat(correct).double().mean().item()


def _measure(opened: OpenRun, name: str, split: Split, epsilon: float, seed: int) -> dict[str, Any]:
    attack = ATTACKS[name]
    started = time.perf_counter()
    seen, top1, top5 = 0, 0, 0
    for number, (images, labels) in enumerate(split.batches(BATCH)):
        draws = generator(seed, Stream.ATTACK, number)
        adversarial = attack.perturb(opened.model, images, labels, epsilon=epsilon, generator=draws)
        _check_bounds(name, adversarial, images, epsilon)
        with torch.no_grad():
            logits = opened.model(adversarial)
        seen += len(labels)
        top1 += int(topk_correct(logits, labels, 1).sum())
        top5 += int(topk_correct(logits, labels, 5).sum())
    return _row(name, attack, epsilon, seed, seen, top1, top5, opened.checkpoint, time.perf_counter() - started)


def _row(
    name: str,
    attack: Attack,
    epsilon: float,
    seed: int,
    images: int,
    top1: int,
    top5: int,
    checkpoint: str,
    seconds: float,
) -> dict[str, Any]:
    low, high = wilson_interval(top1, images)
    return {
        "attack": name,
        "norm": attack.norm,
        "epsilon": epsilon,
        "epsilon_units": "pixels in [0, 1]",
        "steps": attack.steps,
        "step_size": attack.relative_step * epsilon if attack.steps else 0.0,
        "restarts": attack.restarts,
        "seed": seed,
        "images": images,
        "top1": 100 * top1 / images,
        "top1_low": 100 * low,
        "top1_high": 100 * high,
        "top5": 100 * top5 / images,
        "seconds": round(seconds, 3),
        "checkpoint": checkpoint,
    }


def _check_bounds(name: str, adversarial: torch.Tensor, images: torch.Tensor, epsilon: float) -> None:
    distance = float((adversarial - images).abs().max())
    low, high = float(adversarial.min()), float(adversarial.max())
    if distance > epsilon + ROUNDING or low < 0 or high > 1:
        raise AssertionError(f"{name} left its bounds: distance {distance} > ε {epsilon}, pixels in [{low}, {high}]")
