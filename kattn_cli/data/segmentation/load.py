"""From a data set of images with masks to its splits, with what is held out to choose by."""

from __future__ import annotations

import torch
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from kattn_cli.data.holdout import hold_out
from kattn_cli.data.images import SplitName
from kattn_cli.data.segmentation.data import SegmentationData, SegmentationDataSet
from kattn_cli.data.segmentation.split import MaskSplit
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import SegmentationSection

HELD_OUT = 0.05
"""The share of the training images to choose the best epoch by, unless the recipe names another."""

USUAL_SIZE = 512


def load_segmentation(source: SegmentationDataSet, data: SegmentationSection) -> SegmentationData:
    """The splits that ``data`` asks for. Images are normalised by ImageNet's mean and deviation, as Segmenter's are.

    Raises:
        DataError: if a file is missing, an image has no annotation, or the size of the crops is not given.
    """
    facts = source.facts()
    size = data.image_size or facts.image_size
    if size is None:
        raise DataError(f"{data.name}: its images vary in size; give data.image_size, such as {USUAL_SIZE}")
    found = source.load(data, size)
    return SegmentationData(
        name=data.name,
        classes=facts.classes,
        class_names=source.class_names(),
        channels=facts.channels,
        image_size=size,
        stride=data.stride or size,
        mean=_for(facts.channels, IMAGENET_DEFAULT_MEAN),
        std=_for(facts.channels, IMAGENET_DEFAULT_STD),
        splits=_with_validation(found, data),
        chosen_on=data.choose_on,
        unreadable=lambda: source.corrupt,
    )


def _with_validation(found: dict[SplitName, MaskSplit], data: SegmentationSection) -> dict[SplitName, MaskSplit]:
    """Images spread evenly over the training split are held out, unless the test split is to choose by."""
    train, test = found["train"], found["test"]
    if data.choose_on == "test":
        return {"train": train, "validation": test, "test": test}
    kept, held_out = hold_out(torch.zeros(len(train), dtype=torch.int64), data.validation or HELD_OUT)
    if len(held_out) == 0:
        raise DataError(f"{data.name}: a single training image, so that none can be held out to choose by")
    return {"train": train.subset(kept), "validation": train.subset(held_out), "test": test}


def _for(channels: int, values: tuple[float, ...]) -> tuple[float, ...]:
    """Of colour images; of grey ones their mean."""
    return tuple(values) if channels == len(values) else (sum(values) / len(values),) * channels
