"""One run attacked: images batch by batch, then one row for each measurement.

``attacked/<measurement>.csv`` grows batch by batch, so that a stopped attack goes on. One row an image: ``batch`` and
how many images are ``of`` it, ``image`` (its place in the split), ``clean``, ``top1`` and ``top5`` (1 if the answer was
right), ``hit`` (1 if a targeted attack's class was reached), the norms of the perturbation in the units of ε,
``seconds`` (the batch's share).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from rich.progress import Progress
from torch import Tensor

from kattn_cli.attacks import ATTACKS
from kattn_cli.attacks.threat_model import UNITS, Convention, attack_in, check_in, distances_in, worst_of
from kattn_cli.commands.attack.plan import Planned, duration, estimate, seconds_an_image
from kattn_cli.console import console
from kattn_cli.data import Split
from kattn_cli.device import device_name
from kattn_cli.errors import RunError
from kattn_cli.experiment.run import open_run
from kattn_cli.experiment.run_as import OtherAttention
from kattn_cli.runs.bits import CORRECT, packed
from kattn_cli.runs.csv_rows import append_rows, changing, read_frame, read_rows, replace_rows, write_rows
from kattn_cli.runs.identity import OTHERWISE
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run
from kattn_cli.statistics.intervals import wilson_interval
from kattn_cli.tables.attack_names import attack_name
from kattn_cli.training.evaluate import topk_correct
from kattn_cli.training.opened import OpenImageRun, as_image_run
from kattn_cli.training.seed import Stream, generator

BATCH = 256
ATTACKS_CSV = "attacks.csv"
LONG = 10
"""Seconds from which on an attack prints beforehand how long it may take."""
FOLDER = "attacked"
NORMS = ("linf", "l2", "l1")


class AttackedImages:
    """The rows of one measurement, those of batches that were not finished left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with changing(path):
            found = read_rows(path, complete=True)
            rows = {(row["batch"], row["image"]): row for row in found}
            sizes: dict[str, int] = {}
            for batch, _ in rows:
                sizes[batch] = sizes.get(batch, 0) + 1
            whole = [row for (batch, _), row in rows.items() if sizes[batch] == int(row["of"])]
            if len(whole) != len(found):
                write_rows(path, whole)
        self.done = {int(row["batch"]) for row in whole}
        self.images = len(whole)

    def clear(self) -> None:
        """Forget what was measured."""
        with changing(self.path):
            self.path.unlink(missing_ok=True)
        self.done, self.images = set(), 0

    def append(self, batch: int, first: int, seconds: float, **columns: Tensor) -> None:
        """Add one batch, whose images begin at ``first`` of the split; each column is ``(B,)``."""
        values = {name: column.tolist() for name, column in columns.items()}
        size = len(next(iter(values.values())))
        rows = [
            {
                "batch": batch,
                "of": size,
                "image": first + k,
                **{name: f"{column[k]:.6g}" if name in NORMS else int(column[k]) for name, column in values.items()},
                "seconds": f"{seconds / size:.6g}",
            }
            for k in range(size)
        ]
        append_rows(self.path, rows)
        self.done.add(batch)
        self.images += size

    def table(self) -> pd.DataFrame:
        """Return all rows, in the order of the images, each once though another process measured it at the same time.

        Raises:
            RunError: if another process has begun to measure anew.
        """
        with changing(self.path):
            rows = read_frame(self.path) if self.path.exists() else pd.DataFrame(columns=["batch", "image"])
        rows = rows.drop_duplicates(["batch", "image"])
        if len(rows) != self.images:
            raise RunError(f"{self.path}: another process measures this anew; try again when it is done")
        return rows.sort_values("image", ignore_index=True)


@dataclass(frozen=True)
class Protocol:
    """What all attacks on all runs share; ``limit``: only the first so many test images; ``again``: keep nothing.

    ``run_as``: the attention that the weights are run as; ``gradient_as``: that by whose gradient images are made.
    """

    device: torch.device
    seed: int = 0
    limit: int | None = None
    checkpoint: str = "best"
    convention: Convention = "paper"
    batch_size: int = BATCH
    again: bool = False
    run_as: OtherAttention | None = None
    gradient_as: OtherAttention | None = None

    @property
    def recipes(self) -> dict[str, str]:
        """The names of the recipes of both, by the columns of their rows; empty for the runs' own."""
        others = (self.run_as, self.gradient_as)
        return {column: other.recipe if other else "" for column, other in zip(OTHERWISE, others, strict=True)}

    @property
    def own(self) -> bool:
        """Whether runs are attacked as they were trained."""
        return not (self.run_as or self.gradient_as)


class Target:
    """A run under attack: its ``model``, its images, and which of them it classifies rightly.

    ``source`` is what attacks see: the model itself, or the same weights in another attention.
    """

    def __init__(self, run: Run, protocol: Protocol) -> None:
        self.record = provenance(device_name(protocol.device))
        self.protocol = protocol
        self.opened = self._opened(run, protocol.run_as)
        self.model = self.opened.model.requires_grad_(False)
        seen = self._opened(run, protocol.gradient_as) if protocol.gradient_as else self.opened
        self.source = seen.model.requires_grad_(False)
        self.split: Split = self.opened.data.splits["test"].first(protocol.limit).to(protocol.device)
        self.clean = self._clean()
        self.weights = self.opened.weights

    def _opened(self, run: Run, other: OtherAttention | None) -> OpenImageRun:
        return as_image_run(open_run(run, self.protocol.device, self.protocol.checkpoint, other), "an attack on pixels")

    @property
    def run(self) -> Run:
        return self.opened.run

    @property
    def images(self) -> int:
        """Return how many images there are that can be read."""
        return len(self.clean)

    @torch.no_grad()
    def _clean(self) -> Tensor:
        """Return whether the model is right on each image, ``(n,)`` bool.

        Raises:
            RunError: if the model answers otherwise when asked again, since no attack can be measured on it.
        """
        right = []
        for number, (images, labels) in enumerate(self.split.batches(self.protocol.batch_size)):
            logits = self.model(images)
            if number == 0 and not torch.allclose(logits, self.model(images), rtol=1e-3, atol=1e-4):
                raise RunError(f"{self.run.folder}: its model answers differently when asked twice; attacks need one")
            right.append(topk_correct(logits, labels, 1).cpu())
        return torch.cat(right)

    def record_of(self, planned: Planned) -> AttackedImages:
        """Return what this measurement has done to each image so far, on these weights and with this code."""
        shared = {
            "weights": self.weights,
            "commit": self.record["commit"],
            "seed": self.protocol.seed,
            "images": self.images,
            "batch_size": self.protocol.batch_size,
            "convention": self.protocol.convention,
            **{
                one.option: one.attention.model_dump_json()
                for one in (self.protocol.run_as, self.protocol.gradient_as)
                if one
            },
        }
        return AttackedImages(self.run.folder / FOLDER / f"{planned.stem(shared)}.csv")


def attack_run(target: Target, planned: Sequence[Planned], bar: Progress) -> None:
    """Attack one run; rows go to its ``attacks.csv`` as they are measured, what was done to images to ``attacked/``."""
    run, records = target.run, [target.record_of(one) for one in planned]
    if target.protocol.again:
        for record in records:
            record.clear()
    left = [one for one, record in zip(planned, records, strict=True) if record.images < target.images]
    if len(left) < len(planned):
        there = f"{len(planned) - len(left)} of {len(planned)} measurements are there already"
        console.print(f"{run.folder}: {there} (--again measures anew)")
    _print_estimate(target, left)
    total = target.images * len(planned)
    task = bar.add_task(f"{run.label}/{run.folder.name}", total=total, count="", note="")
    try:
        for number, (one, record) in enumerate(zip(planned, records, strict=True)):
            before = number * target.images

            def progress(done: int, before: int = before) -> None:
                bar.update(task, completed=before + done, count=f"{before + done:,}/{total:,}")

            progress(record.images)
            if record.images < target.images:
                _measure(target, one, record, progress)
            row = _row(target, one, record)
            replace_rows(run.folder / ATTACKS_CSV, [row])
            bar.update(task, note=f"{attack_name(row)}: top-1 {row['top1']:.1f}")
    finally:
        if left:
            run.add_measurement(target.record)


def _print_estimate(target: Target, left: Sequence[Planned]) -> None:
    if not left:
        return
    images, labels = next(iter(target.split.batches(target.protocol.batch_size)))
    seconds = estimate(left, target.images, seconds_an_image(target.source, images, labels))
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
            adversarial = attack_in(how, perturb, target.source, images, wanted, settings, draws, *normalisation)
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
    """Draw for each image a class other than its own, all alike; ``(B,)``."""
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
        "step": target.opened.step,
        "weights": target.weights,
        "batch_size": protocol.batch_size,
        "per_image": f"{FOLDER}/{record.path.name}",
        **protocol.recipes,
        CORRECT: packed(table["top1"].to_numpy(bool)),
    }


def _step_size(planned: Planned) -> float:
    """Return the step in the units of ε; an attack that by itself has no budget has no share of one either."""
    absolute = not ATTACKS[planned.attack].needs_budget
    settings = planned.settings
    return (settings.relative_step if absolute else settings.step_size) if settings.steps else 0.0
