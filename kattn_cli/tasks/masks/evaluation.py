"""``kattn eval`` of runs that give every pixel a class: clean, and under corruption, by sliding windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kattn_cli.console import progress_bar
from kattn_cli.data.corruptions import CORRUPTIONS, corrupt
from kattn_cli.data.segmentation import MaskSplit, SegmentationData
from kattn_cli.data.segmentation.split import Wholes
from kattn_cli.device import device_name
from kattn_cli.runs.csv_rows import replace_rows
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.tasks.images.evaluation import Subject
from kattn_cli.tasks.masks.evaluate import BatchedMasks, Segmented, evaluate_masks
from kattn_cli.tasks.masks.overlaps import class_accuracies, class_ious
from kattn_cli.tasks.task import Asked
from kattn_cli.training.corrupted import Making
from kattn_cli.training.seed import Stream, generator

SEGMENTATION_CSV = "segmentation.csv"
CLASSES_CSV = "segmentation_classes.csv"
Row = dict[str, Any]
Step = Callable[[], Row]
CORRUPTED_AT_ONCE = 64
"""Images for which numbers are drawn at once; the same for every run and machine, as what is drawn depends on it."""


def evaluate_segmenters(runs: Sequence[Run], asked: Asked, corruptions: Corruptions | None = None) -> None:
    """Evaluate each run; rows go to its ``segmentation.csv`` as they are measured, those of classes beside it.

    What was measured before of the same weights is left out, but for runs of ``corruptions.again``; the clean images
    are always measured.
    """
    with progress_bar("row") as bar:
        for run in runs:
            record = provenance(device_name(asked.device))
            subject = SegmentedRun(run, asked)
            task = bar.add_task(f"{run.label}/{run.folder.name}", total=None, count="clean", note="")
            try:
                clean = subject.measure(subject.split, {})
                steps = subject.steps(corruptions, clean) if corruptions else []
                bar.update(task, total=1 + len(steps), completed=1, count=f"1/{1 + len(steps)}", note=_note(clean))
                for number, step in enumerate(steps, 2):
                    bar.update(task, completed=number, count=f"{number}/{1 + len(steps)}", note=_note(step()))
            finally:
                run.add_measurement(record)


class SegmentedRun(Subject):
    """A run that gives every pixel a class, under evaluation."""

    @property
    def data(self) -> SegmentationData:
        """What it reads."""
        assert isinstance(self.opened.data, SegmentationData)
        return self.opened.data

    def steps(self, corruptions: Corruptions, clean: Row) -> list[Step]:
        """Return what is left to measure on the images of the row ``clean``; what was measured before is said."""
        known = corruptions.known(self.run.folder / SEGMENTATION_CSV, clean, self.data.image_size)
        left = corruptions.left(self.run, known)
        return [partial(self._measure_corrupted, corruptions, name, severity) for name, severity in left]

    def measure(self, images: BatchedMasks, columns: Mapping[str, Any]) -> Row:
        """Measure, write the rows and return that of all classes; ``columns``: what the images are, if not clean."""
        data = self.data
        found = evaluate_masks(
            self.opened.model, images, classes=data.classes, window=data.image_size, stride=data.stride
        )
        where: Row = {"split": self.split_name, "corruption": "", "severity": 0, "parameters": "", "seed": ""}
        of_weights = {"checkpoint": self.opened.checkpoint, "step": self.opened.step, "weights": self.weights}
        where |= {"images": found.images, **of_weights, "textures": "", **columns}
        row = {**where, "classes": data.classes, **found.measures, "loss": found.loss}
        replace_rows(self.run.folder / CLASSES_CSV, self._class_rows(found, where))
        replace_rows(self.run.folder / SEGMENTATION_CSV, [row])
        return row

    def _measure_corrupted(self, corruptions: Corruptions, name: str, severity: int) -> Row:
        size = self.data.image_size
        corrupted = CorruptedMasks(self.split, name, severity, corruptions.making(size))
        return self.measure(corrupted, corruptions.columns(name, severity, size))

    def _class_rows(self, found: Segmented, where: Row) -> list[Row]:
        parts = zip(
            self.data.class_names,
            class_ious(found.sums).tolist(),
            class_accuracies(found.sums).tolist(),
            found.sums[-1].tolist(),
            strict=True,
        )
        return [
            {**where, "class": name, "iou": _known(iou), "accuracy": _known(accuracy), "pixels": int(pixels)}
            for name, iou, accuracy, pixels in parts
        ]


def _note(row: Row) -> str:
    what = f"{row['corruption']} {row['severity']}: " if row["corruption"] else ""
    return f"{what}mean IoU {row['mean_iou']:.1f}"


def _known(value: float) -> float | str:
    return "" if math.isnan(value) else value


@dataclass(frozen=True)
class CorruptedMasks:
    """``split`` under the corruption ``name`` of ``severity``; images are corrupted once they have the size seen.

    What is drawn is a function of the seed, the type, the severity, and the images' place in the split.
    """

    split: MaskSplit
    name: str
    severity: int
    making: Making

    def batches(self, size: int) -> Iterator[Wholes]:
        """See :class:`~kattn_cli.data.segmentation.split.MaskSplit`."""
        place = CORRUPTIONS[self.name].seed_position(self.severity)
        for number, (images, masks) in enumerate(self.split.batches(CORRUPTED_AT_ONCE)):
            draws = generator(self.making.seed, Stream.CORRUPTION, (place << 32) + number)
            changed = self._corrupted(images, draws)
            for start in range(0, len(images), size):
                yield changed[start : start + size], masks[start : start + size]

    def _corrupted(self, images: list[Tensor], draws: torch.Generator) -> list[Tensor]:
        """Images of one size together."""
        making, changed = self.making, list(images)
        by_size: dict[torch.Size, list[int]] = {}
        for index, image in enumerate(images):
            by_size.setdefault(image.shape, []).append(index)
        for indices in by_size.values():
            batch = torch.stack([images[index] for index in indices])
            done = corrupt(batch, self.name, self.severity, draws, making.parameters, making.textures)
            for index, image in zip(indices, done, strict=True):
                changed[index] = image
        return changed
