"""The weights of one moment of a run with fixed inputs, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from kattn_cli.audit.over_inputs import mean_and_deviation
from kattn_cli.data import SplitName
from kattn_cli.experiment.loading import OpenImageRun, as_image_run
from kattn_cli.experiment.moments import Moment
from kattn_cli.models import Classifier


@dataclass(frozen=True)
class View:
    """The same images for every run of a data set and every epoch: the first ``inputs`` validation images."""

    moment: Moment
    inputs: int
    seed: int
    permutations: int

    @property
    def _opened(self) -> OpenImageRun:
        return as_image_run(self.moment.opened, "kattn audit")

    @cached_property
    def model(self) -> Classifier:
        return self._opened.model.double()

    @cached_property
    def images(self) -> Tensor:
        """``(B, channels, height, width)``."""
        return self.images_of("validation", self.inputs)

    @cached_property
    def entering(self) -> list[Tensor]:
        """What enters the attention of each layer, ``(B, N, C)`` each."""
        return self.model.attention_inputs(self.images)

    @cached_property
    def class_maps(self) -> dict[int, Tensor]:
        """How much the class token takes of each patch, by layer; see the model's."""
        return self.model.class_maps(self.images)

    def images_of(self, split: SplitName, count: int) -> Tensor:
        """The first ``count`` of a split, on the model's device."""
        chosen = self._opened.data.splits[split].first(count).to(self.model.device)
        return torch.cat([images for images, _ in chosen.batches(count)]).double()

    def labels_of(self, split: SplitName, count: int) -> list[int]:
        """Their classes."""
        chosen = self._opened.data.splits[split].first(count)
        return [int(label) for _, labels in chosen.batches(count) for label in labels]

    def layers_with(self, method: str) -> Iterator[tuple[int, Any, Tensor]]:
        """Index, mechanism and input of each layer whose mechanism has ``method``."""
        for layer, (mechanism, x) in enumerate(zip(self.model.mechanisms(), self.entering, strict=True)):
            if hasattr(mechanism, method):
                yield layer, mechanism, x

    def generator(self) -> torch.Generator:
        """The same draws in every table, run and epoch."""
        return torch.Generator().manual_seed(self.seed)


def of_head(values: Tensor, head: int) -> tuple[float, float]:
    """Mean and deviation over inputs of ``values`` ``(B, H)``."""
    mean, deviation = mean_and_deviation(values[:, head])
    return mean.item(), deviation.item()
