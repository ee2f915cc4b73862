"""Segmentation: images with a class for every pixel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from kattn_cli.data.dataset import Facts
from kattn_cli.data.holdout import hold_out
from kattn_cli.data.images import SplitName
from kattn_cli.data.segmentation import MaskSplit, SegmentationData, SegmentationDataSet
from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel, Layers, attention_layers, build_segmenter
from kattn_cli.recipe.data import SegmentationSection
from kattn_cli.recipe.model import Segmenter
from kattn_cli.recipe.schema import Attention, Recipe
from kattn_cli.recipe.strict_yaml import Fault
from kattn_cli.recipe.train import Train, mask_faults
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import MEAN_IOU
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.tasks.images.task import USUAL_SIZE, patch_faults
from kattn_cli.tasks.masks.objective import Segmentation
from kattn_cli.tasks.masks.report import evaluate_and_print
from kattn_cli.tasks.task import (
    OF_CORRUPTIONS,
    OF_SPLITS,
    Asked,
    Task,
    class_faults,
    counted,
    image_size,
    sizes_of_images,
)

HELD_OUT = 0.05
"""The share of the training images to choose the best epoch by, unless the recipe names another."""

USUAL_WINDOW = 512


class Masks(Task[SegmentationDataSet, SegmentationSection, SegmentationData]):
    """A class for every pixel of an image."""

    reads = "images with masks"
    holds = "images with a class for every pixel"
    short = "img"
    measure = MEAN_IOU
    section = SegmentationSection
    models = (Segmenter,)
    options = OF_SPLITS | OF_CORRUPTIONS
    memory_on_cpu = False
    generated = True

    def load(self, source: SegmentationDataSet, section: SegmentationSection) -> SegmentationData:
        """See :class:`Task`; images are normalised by ImageNet's mean and deviation, as Segmenter's are."""
        facts = source.facts()
        size = image_size(section, facts)
        if size is None:
            raise DataError(f"{section.name}: its images vary in size; give data.image_size, such as {USUAL_WINDOW}")
        found = source.load(section, size)
        return SegmentationData(
            name=section.name,
            classes=facts.classes,
            class_names=source.class_names(),
            channels=facts.channels,
            image_size=size,
            stride=section.stride or size,
            mean=_for(facts.channels, IMAGENET_DEFAULT_MEAN),
            std=_for(facts.channels, IMAGENET_DEFAULT_STD),
            splits=_with_validation(found, section),
            chosen_on=section.choose_on,
            unreadable=lambda: source.corrupt,
        )

    def outline(
        self, source: SegmentationDataSet, section: SegmentationSection, folder: Path | None
    ) -> SegmentationData:
        """See :class:`Task`."""
        facts = self.known_facts(source)
        classes, size = sizes_of_images(section, facts)
        channels = facts.channels if facts else 3
        half, names = (0.5,) * channels, tuple(map(str, range(classes)))
        stride = section.stride or size
        return SegmentationData(section.name, classes, names, channels, size, stride, half, half, splits={})

    def shape(self, data: SegmentationData) -> str:
        """See :class:`Task`."""
        return f"{data.image_size} × {data.image_size} × {data.channels}, {data.classes} classes"

    def length(self, source: SegmentationDataSet, section: SegmentationSection) -> int | None:
        """Return the size of the window."""
        return image_size(section, self.known_facts(source))

    def length_of(self, data: SegmentationData) -> int:
        """Return the size of the window."""
        return data.image_size

    def layers(self, model: Any, length: int) -> Layers:
        """See :class:`Task`."""
        return attention_layers(model, length)

    def build(self, recipe: Recipe, data: SegmentationData) -> AttentionModel:
        """See :class:`Task`."""
        assert isinstance(recipe.model, Segmenter)
        sizes = {name: getattr(data, name) for name in ("image_size", "channels", "classes", "mean", "std")}
        return build_segmenter(recipe.model, recipe.attention, **sizes)

    def objective(self, data: SegmentationData) -> Segmentation:
        """See :class:`Task`."""
        return Segmentation(data.classes, data.image_size, data.stride)

    def evaluate(self, runs: Sequence[Run], asked: Asked) -> None:
        """Measure whole images by sliding windows, clean and corrupted, and draw some of them."""
        evaluate_and_print(runs, asked, Corruptions.of(asked, runs) if asked.corrupted else None)

    def data_faults(self, section: SegmentationSection, source: SegmentationDataSet, facts: Facts) -> Iterable[Fault]:
        """See :class:`Task`."""
        yield from class_faults(section, facts)
        size = image_size(section, facts)
        if size is None:
            vary = f"the images of {section.name} vary in size; {USUAL_WINDOW} is usual"
            yield Fault(("data", "image_size"), f"is missing: {vary}")
        elif section.stride and section.stride > size:
            at_most = f"must be at most the window's size, {size}, so that no pixel is left out"
            yield Fault(("data", "stride"), at_most)

    def model_faults(
        self,
        model: Any,
        attention: Attention | None,
        source: SegmentationDataSet | None,
        section: SegmentationSection | None,
    ) -> Iterable[Fault]:
        """Yield patches that do not divide the window."""
        yield from patch_faults(model, self.length(source, section) if source and section else None)

    def training_faults(self, train: Train) -> Iterable[Fault]:
        """Yield what would change an image and not its mask."""
        yield from mask_faults(train)

    def contents(self, source: SegmentationDataSet, section: SegmentationSection) -> str:
        """See :class:`Task`."""
        facts = source.facts()
        splits = source.load(section, section.image_size or facts.image_size or USUAL_SIZE)
        return f"{counted(splits)} {self.reads}, {facts.classes} classes"


def _with_validation(found: dict[SplitName, MaskSplit], section: SegmentationSection) -> dict[SplitName, MaskSplit]:
    """Return the splits with images held out, spread evenly over the training ones, or the test split to choose by."""
    train, test = found["train"], found["test"]
    if section.choose_on == "test":
        return {"train": train, "validation": test, "test": test}
    kept, held_out = hold_out(torch.zeros(len(train), dtype=torch.int64), section.validation or HELD_OUT)
    if len(held_out) == 0:
        raise DataError(f"{section.name}: a single training image, so that none can be held out to choose by")
    return {"train": train.subset(kept), "validation": train.subset(held_out), "test": test}


def _for(channels: int, values: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values of colour images; of grey ones their mean."""
    return tuple(values) if channels == len(values) else (sum(values) / len(values),) * channels
