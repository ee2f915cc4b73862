"""The data section of a recipe: of images, of images with masks, of sequences, or of trajectories."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class DataSection(BaseModel):
    """The data set by name, with its own options (checked against its constructor), and what it is chosen on.

    ``validation``: the share of the training samples held out to choose the best epoch by; by default 0.1, or the
    data set's own validation split where it has one. ``choose_on: test`` chooses on the test set instead, as some
    authors' programs do; every table then says so. ``classes`` is what the recipe counts on: another number found is
    a fault.
    """

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False)
    name: str
    classes: Annotated[int, Field(ge=2)] | None = None
    validation: Annotated[float, Field(gt=0, lt=1)] | None = None
    choose_on: Literal["validation", "test"] = "validation"

    @property
    def options(self) -> dict[str, Any]:
        """Return the data set's own options as the recipe gives them."""
        return dict(self.model_extra or {})


class ImageSection(DataSection):
    """How images are read, besides.

    ``channels`` is what the recipe counts on. Images of varying size are read as the central ``crop_pct`` of a square
    of ``image_size``. ``max_corrupt`` images that cannot be read are named and skipped; one more is an error.
    """

    name: str = "digits"
    image_size: Annotated[int, Field(ge=1, le=2048)] | None = None
    channels: Literal[1, 3] | None = None
    crop_pct: Annotated[float, Field(gt=0, le=1)] = 0.875
    max_corrupt: Annotated[int, Field(ge=0)] = 10
    workers: Annotated[int, Field(ge=0, le=256)] = 4


class SequenceSection(DataSection):
    """Series, sequences of tokens, and texts: all else are options of the data set."""


class SegmentationSection(DataSection):
    """How images and their masks are read, besides.

    ``image_size``: of the crops to train on, and of the window that slides over a whole image, ``stride`` pixels at a
    time (by default its own size). ``max_corrupt`` images that cannot be read are named and skipped.
    """

    image_size: Annotated[int, Field(ge=1, le=2048)] | None = None
    stride: Annotated[int, Field(ge=1, le=2048)] | None = None
    max_corrupt: Annotated[int, Field(ge=0)] = 10
    workers: Annotated[int, Field(ge=0, le=256)] = 4


class TrajectorySection(DataSection):
    """Episodes of an environment: all else are options of the data set."""
