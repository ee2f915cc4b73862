"""The data section of a recipe."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Data(BaseModel):
    """The data set by name, with its own options (checked against its constructor), and how its images are read.

    ``validation``: the share of the training images held out to choose the best epoch by; by default 0.1, or the
    data set's own validation split where it has one. ``choose_on: test`` chooses on the test set instead, as some
    authors' programs do; every table then says so. ``classes`` and ``channels`` are what the recipe counts on:
    another number found is a fault. Images of varying size are read as the central ``crop_pct`` of a square of
    ``image_size``. ``max_corrupt`` images that cannot be read are named and skipped; one more is an error.
    """

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False)
    name: str = "digits"
    image_size: Annotated[int, Field(ge=1, le=2048)] | None = None
    classes: Annotated[int, Field(ge=2)] | None = None
    channels: Literal[1, 3] | None = None
    validation: Annotated[float, Field(gt=0, lt=1)] | None = None
    choose_on: Literal["validation", "test"] = "validation"
    crop_pct: Annotated[float, Field(gt=0, le=1)] = 0.875
    max_corrupt: Annotated[int, Field(ge=0)] = 10
    workers: Annotated[int, Field(ge=0, le=256)] = 4

    @property
    def options(self) -> dict[str, Any]:
        """The data set's own options as the recipe gives them."""
        return dict(self.model_extra or {})
