"""Runs that are opened again: a run's recipe and data, and its model with the weights of one epoch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from kattn_cli.data.images import ImageData
from kattn_cli.data.loaded import LoadedData
from kattn_cli.errors import RunError
from kattn_cli.models import AttentionModel, Classifier
from kattn_cli.recipe.data import ImageSection
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import KEPT

_WHERE_DATA_LIES = {"root", "vocabulary_from", "download", "workers", "max_corrupt"}


@dataclass(frozen=True)
class OpenRun:
    """A run with its trained model in ``eval`` mode on a device; ``checkpoint`` names the weights used.

    ``data`` is of the kind that the run's task loads; ``step``: of the training, after which the weights were kept;
    ``weights``: the fingerprint of what was read; ``run_as``: the recipe whose attention the weights are run as, which
    ``recipe`` has then, empty for the run's own.
    """

    run: Run
    recipe: Recipe
    model: AttentionModel
    data: Any
    checkpoint: str
    step: int
    weights: str
    run_as: str = ""


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


class Moment(NamedTuple):
    """A run with the weights it had after ``epoch``."""

    epoch: int
    checkpoint: str
    """``best`` or ``last`` for the chosen weights, ``kept`` for all others."""
    opened: OpenRun

    @property
    def chosen(self) -> bool:
        """Whether these are the weights that the best epoch, or the last, left."""
        return self.checkpoint != KEPT


def as_image_run(opened: OpenRun, for_: str) -> OpenImageRun:
    """Return the same run, known to classify images; ``for_`` says what needs them, such as ``PGD``.

    Raises:
        RunError: if it reads anything else.
    """
    if not isinstance(opened.model, Classifier) or not isinstance(opened.data, ImageData):
        raise RunError(f"{opened.run.folder}: {reads(opened.data)}; {for_} is for runs on images")
    return OpenImageRun(**{one.name: getattr(opened, one.name) for one in fields(opened)})


def as_image_data(data: LoadedData, what: str, for_: str) -> ImageData:
    """Return the same data, known to be images; ``what`` has them, and ``for_`` says what needs them.

    Raises:
        RunError: if they are anything else.
    """
    if not isinstance(data, ImageData):
        raise RunError(f"{what}: {reads(data)}; {for_} is for images that are classified")
    return data


def reads(data: LoadedData) -> str:
    """Return what a run or recipe reads, in words."""
    return f"reads {data.reads} ({data.name})"


def identity(recipe: Recipe) -> dict[str, Any]:
    """Return the sections of a recipe that decide what a checkpoint's numbers mean."""
    return recipe.model_dump(include={"data", "model", "attention"}, exclude={"data": _WHERE_DATA_LIES})
