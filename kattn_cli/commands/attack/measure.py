"""One run attacked: images batch by batch, then one row for each measurement."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import torch
from rich.progress import Progress
from torch import Tensor

from kattn_cli.attacks import ATTACKS
from kattn_cli.attacks.convention import UNITS, attack_in, check_in, distances_in
from kattn_cli.attacks.restarts import worst_of
from kattn_cli.commands.attack.estimate import duration, estimate, seconds_an_image
from kattn_cli.commands.attack.images import FOLDER, NORMS, AttackedImages
from kattn_cli.commands.attack.plan import Planned
from kattn_cli.commands.attack.target import Target
from kattn_cli.console import console
from kattn_cli.runs.csv_rows import replace_rows
from kattn_cli.tables.attack_names import attack_name
from kattn_cli.tables.statistics import wilson_interval
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
    "targeted",
    "seed",
    "images",
    "checkpoint",
)
LONG = 10
"""Seconds from which on an attack tells beforehand how long it may take."""


def attack_run(target: Target, planned: Sequence[Planned], bar: Progress) -> None:
    """Attack one run; rows go to its ``attacks.csv`` as they are measured, what was done to images to ``attacked/``."""
    run, records = target.run, [target.record_of(one) for one in planned]
    if target.protocol.again:
        for record in records:
            record.clear()
    left = [one for one, record in zip(planned, records, strict=True) if record.images < target.images]
    if len(left) < len(planned):
        there = f"{len(planned) - len(left)} of {len(planned)} measurements are there already"
        console.print(f"{run.folder}: {there} (--again measures anew)", markup=False)
    _tell_time(target, left)
    total = target.images * len(planned)
    task = bar.add_task(f"{run.label}/{run.seed}", total=total, count="", note="")
    try:
        for number, (one, record) in enumerate(zip(planned, records, strict=True)):
            before = number * target.images

            def progress(done: int, before: int = before) -> None:
                bar.update(task, completed=before + done, count=f"{before + done:,}/{total:,}")

            progress(record.images)
            if record.images < target.images:
                _measure(target, one, record, progress)
            row = _row(target, one, record)
            replace_rows(run.folder / ATTACKS_CSV, [row], KEY)
            bar.update(task, note=f"{attack_name(pd.Series(row))}: top-1 {row['top1']:.1f}")
    finally:
        if left:
            run.add_measurement(target.record)


def _tell_time(target: Target, left: Sequence[Planned]) -> None:
    if not left:
        return
    images, labels = next(iter(target.split.batches(target.protocol.batch_size)))
    seconds = estimate(left, target.images, seconds_an_image(target.model, images, labels))
    if (total := sum(seconds.values())) >= LONG:
        parts = ", ".join(f"{name} {duration(part)}" for name, part in seconds.items())
        console.print(f"{target.run.folder}: at most {duration(total)} on {target.images:,} images ({parts})")


def _measure(target: Target, planned: Planned, record: AttackedImages, progress: Callable[[int], None]) -> None:
    perturb = worst_of(ATTACKS[planned.attack].perturb, planned.restarts)
    protocol, model, settings = target.protocol, target.model, planned.settings
    how, normalisation = protocol.convention, (model.mean, model.std)
    first = 0
    for batch, (images, labels) in enumerate(target.split.batches(protocol.batch_size)):
        size = len(labels)
        if batch not in record.done:
            started = time.perf_counter()
            draws = generator(protocol.seed, Stream.ATTACK, batch)
            wanted = _other_classes(model, images, labels, draws) if settings.targeted else labels
            adversarial = attack_in(how, perturb, model, images, wanted, settings, draws, *normalisation)
            check_in(how, planned.attack, adversarial, images, settings, *normalisation)
            with torch.no_grad():
                logits = model(adversarial)
            columns: dict[str, Tensor] = {
                "clean": target.clean[first : first + size],
                "top1": topk_correct(logits, labels, 1),
                "top5": topk_correct(logits, labels, 5),
                "hit": topk_correct(logits, wanted, 1) & settings.targeted,
            }
            columns |= {norm: far for norm, far in distances_in(how, adversarial, images, *normalisation).items()}
            record.append(batch, first, time.perf_counter() - started, **columns)
        first += size
        progress(first)


def _other_classes(model: Any, images: Tensor, labels: Tensor, draws: torch.Generator) -> Tensor:
    """For each image a class other than its own, all alike; ``(B,)``."""
    with torch.no_grad():
        classes = model(images[:1]).shape[-1]
    return (labels + torch.randint(1, classes, labels.shape, generator=draws).to(labels.device)) % classes


def _row(target: Target, planned: Planned, record: AttackedImages) -> dict[str, Any]:
    table, settings, protocol = record.table(), planned.settings, target.protocol
    images = len(table)
    low, high = wilson_interval(int(table["top1"].sum()), images)
    return {
        "attack": planned.attack,
        "norm": settings.norm,
        "epsilon": settings.epsilon,
        "epsilon_units": UNITS[protocol.convention],
        "steps": settings.steps,
        "step_size": _step_size(planned),
        "restarts": planned.restarts,
        "targeted": settings.targeted,
        "seed": protocol.seed,
        "images": images,
        "clean_top1": 100 * table["clean"].mean(),
        "top1": 100 * table["top1"].mean(),
        "top1_low": 100 * low,
        "top1_high": 100 * high,
        "top5": 100 * table["top5"].mean(),
        "target_rate": 100 * table["hit"].mean() if settings.targeted else "",
        **{f"mean_{norm}": table[norm].mean() for norm in NORMS},
        "seconds": round(table["seconds"].sum(), 3),
        "checkpoint": target.opened.checkpoint,
        "weights": target.weights,
        "batch_size": protocol.batch_size,
        "per_image": f"{FOLDER}/{record.path.name}",
    }


def _step_size(planned: Planned) -> float:
    """In the units of ε; an attack that by itself has no budget has no share of one either."""
    absolute = math.isinf(ATTACKS[planned.attack].epsilons[0])
    settings = planned.settings
    return (settings.relative_step if absolute else settings.step_size) if settings.steps else 0.0
