"""The weights of one moment of a run with fixed inputs, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from kattn_cli.data import Split, SplitName
from kattn_cli.models import Classifier


@dataclass(frozen=True)
class View:
    """The same images for every run of a data set and every epoch: the first ``inputs`` validation images.

    ``model``: with the weights after ``epoch``, in float64. ``splits``: the run's images. ``permutations``: of tokens,
    for nulls.
    """

    model: Classifier
    splits: Mapping[SplitName, Split]
    epoch: int
    inputs: int
    seed: int
    permutations: int

    @cached_property
    def images(self) -> Tensor:
        """Return the images that all is measured on, ``(B, channels, height, width)``."""
        return self.images_of("validation", self.inputs)

    @cached_property
    def entering(self) -> list[Tensor]:
        """Return what enters the attention of each layer, ``(B, N, C)`` each."""
        return self.model.attention_inputs(self.images)

    @cached_property
    def class_maps(self) -> dict[int, Tensor]:
        """Return how much the class token takes of each patch, by layer; see the model's."""
        return self.model.class_maps(self.images)

    def images_of(self, split: SplitName, count: int) -> Tensor:
        """Return the first ``count`` of a split, on the model's device."""
        chosen = self.splits[split].first(count).to(self.model.device)
        return torch.cat([images for images, _ in chosen.batches(count)]).double()

    def labels_of(self, split: SplitName, count: int) -> list[int]:
        """Return the classes of a split's first ``count`` images."""
        chosen = self.splits[split].first(count)
        return [int(label) for _, labels in chosen.batches(count) for label in labels]

    def layers_with(self, method: str) -> Iterator[tuple[int, Any, Tensor]]:
        """Yield index, mechanism and input of each layer whose mechanism has ``method``."""
        for layer, (mechanism, x) in enumerate(zip(self.model.mechanisms(), self.entering, strict=True)):
            if hasattr(mechanism, method):
                yield layer, mechanism, x

    def generator(self) -> torch.Generator:
        """Return a generator that draws the same in every table, run and epoch."""
        return torch.Generator().manual_seed(self.seed)


def of_head(values: Tensor, head: int) -> tuple[float, float]:
    """Return the mean and deviation over inputs of ``values`` ``(B, H)``."""
    mean, deviation = mean_and_deviation(values[:, head])
    return mean.item(), deviation.item()


def mean_and_deviation(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return both over the first axis, ``(B, …)`` to ``(…)`` twice, in float64; a single input deviates by 0."""
    values = values.double()
    return values.mean(0), values.std(0) if len(values) > 1 else torch.zeros_like(values[0])


def softmax_layers(view: View) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    for layer, mechanism, x in view.layers_with("kernel_inputs"):
        yield layer, *mechanism.kernel_inputs(x)
