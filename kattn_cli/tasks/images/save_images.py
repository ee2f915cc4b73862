"""A contact sheet of what the corruptions look like on a run's own test images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from kattn_cli.console import console
from kattn_cli.data import MemorySplit, Split
from kattn_cli.data.corruptions import SEVERITIES
from kattn_cli.errors import DataError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.loading import image_data_of
from kattn_cli.figures.contact_sheet import draw_contact_sheet
from kattn_cli.runs.run import RECIPE, Run
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.training.corrupted import CorruptedSplit
from kattn_cli.training.evaluate import Batched

_TRIED = 10


def save_sheets(runs: Sequence[Run], corruptions: Corruptions) -> None:
    """A contact sheet for each run, its path printed."""
    for run in runs:
        console.print(save_images(run, corruptions))


def save_images(run: Run, corruptions: Corruptions) -> Path:
    """Draw ``figures/corruptions.png`` and ``.pdf`` in the run's folder: a row for each type, all of one image a row.

    Images from all over the test set, each corrupted by itself. No weights are needed. Returns the picture's path.
    """
    recipe = recipes.load(run.folder / RECIPE, weights=False)
    data = image_data_of(recipe, "--save-images")
    making = corruptions.making(data.image_size)
    test = data.splits["test"]
    pictures = {}
    for number, name in enumerate(corruptions.names):
        image = _one(test, number * len(test) // len(corruptions.names))
        parts: list[Batched] = [image, *(CorruptedSplit(image, name, severity, making) for severity in SEVERITIES)]
        row = [next(iter(part.batches(1)))[0][0] for part in parts]
        pictures[name] = [one.permute(1, 2, 0).cpu().numpy() for one in row]
    caption = f"{data.name}, {data.image_size} × {data.image_size}; parameters {making.parameters}, seed {making.seed}"
    return draw_contact_sheet(pictures, run.folder / "figures", caption)


def _one(test: Split, place: int) -> MemorySplit:
    """The image there, or the first after it that can be read."""
    following = torch.arange(place, len(test))[:_TRIED]
    for image, label in test.subset(following).batches(1):
        return MemorySplit(image, label)
    raise DataError(f"of the test images from number {place} on, {len(following)} in a row cannot be read")
