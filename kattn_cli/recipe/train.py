"""The train section of a recipe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from kattn_cli.recipe.model import STRICT
from kattn_cli.recipe.strict_yaml import Fault

Share = Annotated[float, Field(ge=0, le=1)]


class Train(BaseModel):
    """AdamW with a linear warm-up and a cosine, and the DeiT protocol's augmentation and regularisation.

    ``warmup_steps``, where given, takes the place of ``warmup_epochs``.
    ``batch_size`` is what one step of the optimizer sees: all devices together, in ``accumulate`` parts on each.
    Augmentation: ``crop_padding`` (pixels of zeros around), ``crop_scale`` (smallest share of the area that a resized
    crop keeps), ``flip`` (probability), ``randaugment`` (timm's notation), ``erasing`` (probability), ``mixup`` and
    ``cutmix`` (each its α), ``repeats`` (copies of an image in an epoch, with as many fewer images).
    ``ema``: decay of the averaged weights, which are then the ones that are evaluated and kept.
    ``keep_every``: so many epochs apart the weights are kept for analysis, those before training and the last too.
    """

    model_config = STRICT
    epochs: Annotated[int, Field(ge=1, le=100_000)] = 12
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    accumulate: Annotated[int, Field(ge=1, le=65_536)] = 1

    lr: Annotated[float, Field(gt=0, le=10)] = 3e-3
    min_lr: Annotated[float, Field(ge=0, le=10)] = 0.0
    warmup_lr: Annotated[float, Field(ge=0, le=10)] = 0.0
    warmup_epochs: Annotated[int, Field(ge=0)] = 1
    warmup_steps: Annotated[int, Field(ge=1)] | None = None
    weight_decay: Annotated[float, Field(ge=0, le=10)] = 0.05
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1
    clip_grad: Annotated[float, Field(gt=0)] | None = None
    ema: Annotated[float, Field(gt=0, lt=1)] | None = None

    crop_padding: Annotated[int, Field(ge=0, le=64)] = 0
    crop_scale: Annotated[float, Field(gt=0, le=1)] | None = None
    flip: Share = 0.0
    randaugment: str | None = None
    erasing: Share = 0.0
    mixup: Annotated[float, Field(ge=0, le=10)] = 0.0
    cutmix: Annotated[float, Field(ge=0, le=10)] = 0.0
    repeats: Annotated[int, Field(ge=1, le=16)] = 1

    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    compile: bool = False
    grad_checkpointing: bool = False
    parallel: Literal["ddp", "fsdp"] = "ddp"

    on_nonfinite: Literal["stop", "skip"] = "stop"
    checkpoint_steps: Annotated[int, Field(ge=1)] | None = None
    keep_every: Annotated[int, Field(ge=1)] | None = None
    tensorboard: bool = False


AUGMENTATIONS = ("crop_padding", "crop_scale", "flip", "randaugment", "erasing", "mixup", "cutmix")


def augmentation_faults(train: Train) -> Iterable[Fault]:
    """Yield what a training on sequences asks for and can be done to images alone."""
    for key in AUGMENTATIONS:
        if getattr(train, key):
            yield Fault(("train", key), "is for images, and the model reads sequences; leave this out")


def mask_faults(train: Train) -> Iterable[Fault]:
    """Yield what a training on images with masks asks for and would change the one and not the other."""
    for key in AUGMENTATIONS:
        if key != "flip" and getattr(train, key):
            yield Fault(("train", key), "is for images without masks; leave this out")


def train_faults(train: Train) -> Iterable[Fault]:
    """Yield values that are sound alone and not together."""
    if not train.warmup_steps and train.warmup_epochs >= train.epochs > 1:
        yield Fault(("train", "warmup_epochs"), f"must be less than train.epochs = {train.epochs}")
    if train.accumulate > train.batch_size:
        yield Fault(("train", "accumulate"), f"must be at most train.batch_size = {train.batch_size}")
    if train.min_lr > train.lr:
        yield Fault(("train", "min_lr"), f"must be at most train.lr = {train.lr:g}")
    if train.crop_padding and train.crop_scale:
        yield Fault(("train", "crop_scale"), "is one way to crop and crop_padding another; give one of the two")
    if train.ema and train.parallel == "fsdp":
        yield Fault(("train", "ema"), "is not kept for parallel: fsdp, whose weights lie in pieces")
