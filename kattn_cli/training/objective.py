"""Objectives: what a training on one kind of data minimises, counts, and chooses its best epoch by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from kattn_cli.models import AttentionModel
from kattn_cli.recipe.train import Train
from kattn_cli.tables.measures import LOSS, Measure
from kattn_cli.training.augment.batches import Mix
from kattn_cli.training.feed import Feed, MemoryFeed
from kattn_cli.training.plan import Plan


class Checked(Protocol):
    """The result of evaluating a model on a split."""

    @property
    def loss(self) -> float:
        """Mean over what is predicted."""

    @property
    def auxiliary_loss(self) -> float:
        """What mechanisms and experts add to it."""

    @property
    def measures(self) -> dict[str, float]:
        """By name, as :meth:`Objective.measures` gives them."""


class Objective(ABC):
    """One kind of data, one file. ``outputs`` are the model's, ``targets`` what a split gives beside its inputs."""

    measure: ClassVar[Measure]
    """What the best epoch is chosen by: the loss, or one of :meth:`measures`."""

    kept: int
    """How many sums :meth:`sums` keeps."""

    @abstractmethod
    def loss(self, outputs: Tensor, targets: Any, label_smoothing: float) -> Tensor:
        """Return the scalar that is minimised, auxiliary losses apart: a mean over what is predicted."""

    @abstractmethod
    def count(self, targets: Any) -> Tensor:
        """Return how many things are predicted, ``()``: images, tokens, pixels, actions."""

    @abstractmethod
    def sums(self, outputs: Tensor, targets: Any) -> Tensor:
        """Return ``(kept,)`` float64 sums over a batch, of which :meth:`measures` makes those of many batches."""

    @abstractmethod
    def measures(self, sums: Sequence[float], count: float) -> dict[str, float]:
        """Return columns of ``metrics.csv``, in per cent where they are shares."""

    @abstractmethod
    def evaluate(self, model: AttentionModel, split: Any, gather: Callable[[Tensor], Tensor] | None = None) -> Checked:
        """Evaluate a model on a split, in ``eval`` mode.

        Args:
            gather: joins ``(n, …)`` of several processes, each of which has a part as its ``split``.
        """

    def feed(self, split: Any, plan: Plan, settings: Train, device: torch.device) -> Feed:
        """Return what gives the batches of ``split``, which is the training split on ``device``."""
        return MemoryFeed(split, device)

    def mix(self, settings: Train) -> Mix | None:
        """Return what mixes the samples of a batch, where ``settings`` ask for it and the data can be mixed."""
        return None

    def value(self, loss: float, measures: Mapping[str, float]) -> float:
        """Return what an epoch is chosen by."""
        return loss if self.measure.name == LOSS.name else measures[self.measure.name]

    def merit(self, loss: float, measures: Mapping[str, float]) -> tuple[float, float]:
        """Return a pair that is greater for the better epoch; of equal measures the smaller loss decides.

        Of equal pairs the first epoch stays the best.
        """
        return self.measure.merit(self.value(loss, measures)), -loss
