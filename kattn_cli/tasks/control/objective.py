"""The actions of trajectories: mean squared error, by which the best epoch is chosen, too.

Source: Chen et al. 2021, "Decision Transformer", §3: of continuous actions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel, auxiliary_loss
from kattn_cli.tables.measures import LOSS
from kattn_cli.training.evaluate import Batched
from kattn_cli.training.objective import Objective

EVAL_WINDOWS = 256


class Actions(Protocol):
    """What a model is to say; see :class:`~kattn_cli.data.sequences.Padded`."""

    @property
    def values(self) -> Tensor:
        """``(B, K, A)``."""

    @property
    def mask(self) -> Tensor | None:
        """``(B, K)``, True where there is a step, or None for no padding."""


@dataclass(frozen=True)
class CheckedActions:
    """The mean squared error over ``steps`` steps and the dimensions of an action; there is no measure beside it."""

    steps: int
    loss: float
    auxiliary_loss: float
    measures: dict[str, float] = field(default_factory=dict)


class ActionError(Objective):
    """Actions ``(B, K, A)`` against those that were taken; padding counts nowhere."""

    measure = LOSS
    kept = 0

    def loss(self, outputs: Tensor, targets: Actions, label_smoothing: float) -> Tensor:
        """See :class:`Objective`; there are no labels to smooth."""
        return (_squares(outputs, targets).sum() / self.count(targets)).float()

    def count(self, targets: Actions) -> Tensor:
        """Return the number of steps."""
        return _there(targets).sum()

    def sums(self, outputs: Tensor, targets: Actions) -> Tensor:
        """Return nothing: all there is to know is the loss."""
        return torch.zeros(0, dtype=torch.float64, device=outputs.device)

    def measures(self, sums: Sequence[float], count: float) -> dict[str, float]:
        """Return nothing."""
        return {}

    @torch.no_grad()
    def evaluate(
        self, model: AttentionModel, split: Batched, gather: Callable[[Tensor], Tensor] | None = None
    ) -> CheckedActions:
        """Return the mean over the steps of all windows of ``split``, in ``eval`` mode; the mode is put back.

        Raises:
            DataError: if there is no window.
        """
        training = model.training
        model.eval()
        rows: list[Tensor] = []
        targets: Any
        for windows, targets in split.batches(EVAL_WINDOWS):
            squares = _squares(model(windows), targets).sum(-1)
            steps = _there(targets).sum(-1)
            rows.append(torch.stack([squares, steps, steps * auxiliary_loss(model).double()], 1))
        model.train(training)
        if not rows:
            raise DataError("there is no window of a trajectory to evaluate, or there are more processes than windows")
        joined = gather(torch.cat(rows)) if gather else torch.cat(rows)
        squares, steps, auxiliary = joined.sum(0).tolist()
        return CheckedActions(int(steps), squares / steps, auxiliary / steps)


def _there(targets: Actions) -> Tensor:
    """``(B, K)`` float64: 1 where there is a step."""
    values = targets.values
    if targets.mask is None:
        return torch.ones(values.shape[:2], dtype=torch.float64, device=values.device)
    return targets.mask.double()


def _squares(outputs: Tensor, targets: Actions) -> Tensor:
    """Return the mean over the dimensions of an action, ``(B, K)`` float64; 0 at the padding."""
    squares = (outputs - targets.values).double().square().mean(-1)
    return squares if targets.mask is None else squares.masked_fill(~targets.mask, 0)
