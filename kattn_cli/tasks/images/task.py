"""Images that are classified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import timm
import torch

from kattn_cli.data.dataset import Facts, ImageDataSet
from kattn_cli.data.holdout import check_labels, with_validation
from kattn_cli.data.images import ImageData, MemorySplit, channel_statistics
from kattn_cli.errors import DataError, did_you_mean, stoppable
from kattn_cli.models import AttentionModel, Layers, attention_layers, build_model
from kattn_cli.models.vit import build_timm, timm_names
from kattn_cli.recipe.data import ImageSection
from kattn_cli.recipe.model import PRESETS, TimmModel, Tost, Vit, models_by_name
from kattn_cli.recipe.schema import Attention, Recipe, layer_faults
from kattn_cli.recipe.strict_yaml import Fault
from kattn_cli.recipe.train import Train
from kattn_cli.runs.find import figures_folder
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import TOP1
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.tasks.images.objective import ImageClassification
from kattn_cli.tasks.images.out_of_distribution import other_folders
from kattn_cli.tasks.images.report import evaluate_and_report, save_sheets
from kattn_cli.tasks.task import (
    OF_CLASSES,
    OF_CORRUPTIONS,
    OF_SPLITS,
    Asked,
    Task,
    class_faults,
    counted,
    image_size,
    sizes_of_images,
)

USUAL_SIZE = 224


FLAT = 1e-9
"""A standard deviation that is none: one pixel of 10¹² that differs by 1/255 makes more."""


class Images(Task[ImageDataSet, ImageSection, ImageData]):
    """One of several classes for each image."""

    reads = "images"
    holds = "images, which encoder and decoder do not read"
    short = "img"
    measure = TOP1
    section = ImageSection
    models = (Vit, Tost, TimmModel)
    options = OF_SPLITS | OF_CLASSES | OF_CORRUPTIONS | {"reference", "ood", "sensitivity"}
    next_command = "attack {names} --pgd --epsilon 4/255"
    memory_on_cpu = False

    def load(self, source: ImageDataSet, section: ImageSection) -> ImageData:
        """See :class:`Task`; all images are of one size."""
        facts = source.facts()
        size = image_size(section, facts)
        if size is None:
            raise DataError(f"{section.name}: its images vary in size; give data.image_size, such as {USUAL_SIZE}")
        channels = section.channels if section.channels and source.any_channels else facts.channels
        found = source.load(section, size)
        check_labels(section.name, found, facts.classes, ImageData.unit)
        splits = {name: _of_size(split, size) for name, split in with_validation(found, section).items()}
        mean, std = channel_statistics(splits["train"], channels)
        _require_variance(section.name, mean, std)
        return ImageData(
            name=section.name,
            classes=facts.classes,
            channels=channels,
            image_size=size,
            mean=mean,
            std=std,
            splits=splits,
            chosen_on=section.choose_on,
            unreadable=lambda: source.corrupt,
        )

    def outline(self, source: ImageDataSet, section: ImageSection, folder: Path | None) -> ImageData:
        """See :class:`Task`."""
        facts = self.known_facts(source)
        classes, size = sizes_of_images(section, facts)
        channels = section.channels or (facts.channels if facts else 3)
        half = (0.5,) * channels
        return ImageData(section.name, classes, channels, size, half, half, splits={})

    def shape(self, data: ImageData) -> str:
        """See :class:`Task`."""
        return f"{data.image_size} × {data.image_size} × {data.channels}, {data.classes} classes"

    def length(self, source: ImageDataSet, section: ImageSection) -> int | None:
        """Return the size of the images."""
        return image_size(section, self.known_facts(source))

    def length_of(self, data: ImageData) -> int:
        """Return the size of the images."""
        return data.image_size

    def layers(self, model: Any, length: int) -> Layers:
        """See :class:`Task`."""
        return attention_layers(model, length)

    def build(self, recipe: Recipe, data: ImageData) -> AttentionModel:
        """See :class:`Task`."""
        assert isinstance(recipe.model, Vit | Tost | TimmModel)
        sizes = {name: getattr(data, name) for name in ("image_size", "channels", "classes", "mean", "std")}
        return build_model(recipe.model, recipe.attention, **sizes)

    def objective(self, data: ImageData) -> ImageClassification:
        """See :class:`Task`."""
        return ImageClassification(data)

    def evaluate(self, runs: Sequence[Run], asked: Asked) -> None:
        """Measure clean, corrupted and other images; or draw what corruptions look like."""
        making, folders = Corruptions.of(asked, runs), other_folders(asked.ood, asked.anew(runs))
        if asked.save_images:
            save_sheets(runs, making, asked.opener)
            if not (asked.corrupted or folders or asked.sensitivity):
                return
        with stoppable("what was measured so far is in each run's eval.csv; the same command goes on from there"):
            evaluate_and_report(
                runs,
                asked,
                corruptions=making if asked.corrupted else None,
                folders=folders,
                figures=figures_folder(asked.results, runs),
            )

    def data_faults(self, section: ImageSection, source: ImageDataSet, facts: Facts) -> Iterable[Fault]:
        """See :class:`Task`."""
        yield from class_faults(section, facts)
        if section.channels and section.channels != facts.channels and not source.any_channels:
            channels = "1 channel" if facts.channels == 1 else f"{facts.channels} channels"
            yield Fault(("data", "channels"), f"{section.name} has {channels}, not {section.channels}")
        if image_size(section, facts) is None:
            vary = f"the images of {section.name} vary in size; {USUAL_SIZE} is usual"
            yield Fault(("data", "image_size"), f"is missing: {vary}")

    def model_faults(
        self, model: Any, attention: Attention | None, source: ImageDataSet | None, section: ImageSection | None
    ) -> Iterable[Fault]:
        """Yield a name that timm does not know, and patches that do not divide the images."""
        size = self.length(source, section) if source and section else None
        if isinstance(model, TimmModel):
            yield from _timm_faults(model.name, attention, size)
        else:
            yield from patch_faults(model, size)

    def training_faults(self, train: Train) -> Iterable[Fault]:
        """See :class:`Task`: there is nothing that cannot be done to images."""
        yield from ()

    def causal(self, model: Any) -> str:
        """See :class:`Task`."""
        return "model.causal" if isinstance(model, Vit) and model.causal else ""

    def contents(self, source: ImageDataSet, section: ImageSection) -> str:
        """See :class:`Task`."""
        facts = source.facts()
        splits = source.load(section, section.image_size or facts.image_size or USUAL_SIZE)
        return f"{counted(splits)} {ImageData.unit}, {facts.classes} classes"


def patch_faults(model: Any, size: int | None) -> Iterable[Fault]:
    """Yield patches that do not divide images of ``size``."""
    if size and size % model.patch_size:
        yield Fault(("model", "patch_size"), f"must divide the image size, {size}, and {model.patch_size} does not")


def _of_size(split: Any, size: int) -> Any:
    if not isinstance(split, MemorySplit) or split.images.shape[-2:] == (size, size):
        return split
    return split.resized(size)


def _timm_faults(name: str, attention: Attention | None, size: int | None) -> Iterable[Fault]:
    path = ("model", "name")
    if not timm.is_model(name):
        from kattn_cli.tasks import kinds

        known = models_by_name(kinds())
        hint = did_you_mean(name, [*known, *PRESETS, *timm_names()])
        expected = f"{', '.join(known)}, one of their presets or one of timm's vision transformers"
        yield Fault(path, f'expected {expected}, not "{name}"{hint}')
        return
    try:
        with torch.device("meta"):
            backbone = build_timm(name)
    except Exception as error:
        yield Fault(path, str(error))
        return
    if attention:
        yield from layer_faults(attention, len(backbone.blocks))
    patch = backbone.patch_embed.patch_size[0]
    if size and size % patch:
        yield Fault(
            ("data", "image_size"),
            f"must be a multiple of {patch}, the patch size of {name} (224, say), and {size} is not",
        )


def _require_variance(name: str, mean: Sequence[float], std: Sequence[float]) -> None:
    """Refuse images that have no standard deviation to be divided by.

    Raises:
        DataError: if every pixel of a channel is the same.
    """
    flat = [f"{channel} (every pixel is {mean[channel]:.3g})" for channel, one in enumerate(std) if not one > FLAT]
    if flat:
        raise DataError(
            f"{name}: no variance in channel {' and '.join(flat)} of the training images, which are divided by their "
            "standard deviation; look at the images"
        )
