"""From a run's folder back to its recipe, its model and its data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from kattn_cli.console import console
from kattn_cli.data import ImageData, LoadedData, SequenceData, TextData, data_set, load_data
from kattn_cli.data.dataset import NOT_GENERATED, DataSet, SequenceDataSet
from kattn_cli.data.segmentation import SegmentationDataSet
from kattn_cli.data.vocabulary import VOCABULARY_FILE, Vocabulary, read_vocabulary
from kattn_cli.errors import CheckpointError, DataError, RecipeError, RunError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.building import build
from kattn_cli.models import AttentionModel, Classifier
from kattn_cli.recipe.data import DataSection, ImageSection
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.run import RECIPE, Run
from kattn_cli.training.checkpoint import has_weights, load_weights, weights_path

_WHERE_DATA_LIES = {"root", "vocabulary_from", "download", "workers", "max_corrupt"}


@dataclass(frozen=True)
class OpenRun:
    """A run with its trained model in ``eval`` mode on a device; ``checkpoint`` names the weights used.

    ``step``: of the training, after which they were kept.
    """

    run: Run
    recipe: Recipe
    model: AttentionModel
    data: LoadedData
    checkpoint: str
    step: int


@dataclass(frozen=True)
class OpenImageRun(OpenRun):
    """A run whose model classifies images."""

    model: Classifier
    data: ImageData

    @property
    def section(self) -> ImageSection:
        """The recipe's data section."""
        assert isinstance(self.recipe.data, ImageSection)
        return self.recipe.data


def data_of(recipe: Recipe) -> LoadedData:
    """The recipe's data set, loaded once a process."""
    return _load_data(type(recipe.data), recipe.data.model_dump_json())


@cache
def _load_data(kind: type[DataSection], section: str) -> LoadedData:
    data = kind.model_validate_json(section)
    _tell_of_generation(data_set(data))
    return load_data(data)


def _tell_of_generation(source: DataSet) -> None:
    """What is made before a first training can take minutes."""
    for file in source.files() if isinstance(source, SequenceDataSet | SegmentationDataSet) else []:
        if file.status == NOT_GENERATED:
            console.print(f"{file.path}: is being generated, once", markup=False)


def identity(recipe: Recipe) -> dict[str, Any]:
    """The sections of a recipe that decide what a checkpoint's numbers mean."""
    return recipe.model_dump(include={"data", "model", "attention"}, exclude={"data": _WHERE_DATA_LIES})


def open_run(run: Run, device: torch.device, checkpoint: str = "best") -> OpenRun:
    """Load a run's ``best`` weights (chosen on validation), ``last``, or those of an epoch that were kept.

    A run stopped in its first epoch has no best; its last is used, and that is said.

    Raises:
        RecipeError, DataError, CheckpointError: if the recipe, its data or the weights cannot be used, in one line.
    """
    recipe = recipes.load(run.folder / RECIPE, weights=False)
    checkpoint = which_weights(run, checkpoint, console.print)
    data = data_of(recipe)
    _require_same_vocabulary(run, data)
    model = build(recipe, data)
    path = weights_path(run.folder, checkpoint)
    used = load_weights(path, model, identity(recipe), on_damage=partial(console.print, markup=False))
    return OpenRun(run, recipe, model.to(device).eval(), data, checkpoint, int(used.get("step", 0)))


def _require_same_vocabulary(run: Run, data: LoadedData) -> None:
    """Raises:
    DataError: if the run's tokens stood for something else when it was trained, or its vocabulary cannot be read.
    """
    vocabulary = vocabulary_of(data)
    if vocabulary and (run.folder / VOCABULARY_FILE).is_file():
        own = read_vocabulary(str(run.folder / VOCABULARY_FILE))
        if own.to_json() != vocabulary.to_json():
            raise DataError(
                f"{run.folder}: its vocabulary, of {own.size:,} tokens, is not that of its data now, of "
                f"{vocabulary.size:,}, whose text has changed; put it back, or train again"
            )


def which_weights(run: Run, checkpoint: str, tell: Callable[[str], object]) -> str:
    """``checkpoint``, or ``last`` where the run has no such weights, which is then told.

    Raises:
        CheckpointError: if it has none at all.
    """
    if not has_weights(run.folder, checkpoint) and has_weights(run.folder, "last"):
        tell(f"{run.folder}: has no {checkpoint} checkpoint; using the last")
        checkpoint = "last"
    if not has_weights(run.folder, checkpoint):
        raise CheckpointError(f"{run.folder}: has no checkpoint (its training is {run.status})")
    return checkpoint


def as_image_run(opened: OpenRun, for_: str) -> OpenImageRun:
    """The same, known to be of a run that classifies images; ``for_`` what they are needed for, such as ``PGD``.

    Raises:
        RunError: if it reads anything else.
    """
    if not isinstance(opened.model, Classifier) or not isinstance(opened.data, ImageData):
        raise RunError(f"{opened.run.folder}: {reads(opened.data)}; {for_} is for runs on images")
    return OpenImageRun(opened.run, opened.recipe, opened.model, opened.data, opened.checkpoint, opened.step)


def image_data_of(recipe: Recipe, for_: str) -> ImageData:
    """The recipe's images; ``for_`` what they are needed for.

    Raises:
        RecipeError: if it reads anything else.
    """
    data = data_of(recipe)
    if not isinstance(data, ImageData):
        raise RecipeError(f"{recipe.name}: {reads(data)}; {for_} is for recipes on images")
    return data


def reads(data: LoadedData) -> str:
    """What a run or recipe reads, in words."""
    return f"reads {data.reads} ({data.name})"


def vocabulary_of(data: LoadedData) -> Vocabulary | None:
    """What the tokens of sequences or of a text stand for."""
    return data.vocabulary if isinstance(data, SequenceData | TextData) else None
