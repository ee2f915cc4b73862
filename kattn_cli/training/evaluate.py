"""Accuracy, loss and calibration of a classifier on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel, auxiliary_loss
from kattn_cli.statistics.scores import expected_calibration_error

EVAL_BATCH = 256


@dataclass(frozen=True)
class Evaluation:
    """Percentages for ``top1``, ``top5``; ``ece`` (expected calibration error) as a share of 1."""

    images: int
    loss: float
    auxiliary_loss: float
    top1: float
    top5: float
    ece: float

    @property
    def measures(self) -> dict[str, float]:
        """The measures of an epoch's row besides the losses."""
        return {"top1": self.top1, "top5": self.top5}


def topk_correct(logits: Tensor, labels: Tensor, k: int) -> Tensor:
    """Return whether each image's label is among the ``k`` highest logits, ``(B,)`` bool."""
    k = min(k, logits.shape[-1])
    return (logits.topk(k).indices == labels[:, None]).any(-1)


@dataclass(frozen=True)
class Outputs:
    """Logits of a model for each image: ``scores`` ``(n, classes)`` float32, with the true ``labels`` ``(n,)``.

    ``auxiliary`` ``(n,)``: the auxiliary loss of the batch that the image was in.
    """

    scores: Tensor
    labels: Tensor
    auxiliary: Tensor

    def among(self, classes: Tensor) -> Outputs:
        """Return only the images of ``classes`` ``(k,)`` and their logits; labels become places in ``classes``."""
        place = torch.full((self.scores.shape[-1],), -1, device=self.labels.device)
        place[classes.to(place.device)] = torch.arange(len(classes), device=place.device)
        kept = place[self.labels] >= 0
        chosen = self.scores[kept][:, classes.to(self.scores.device)]
        return Outputs(chosen, place[self.labels[kept]], self.auxiliary[kept])

    def confidence(self) -> Tensor:
        """Return the highest probability that softmax gives any class, ``(n,)`` float64."""
        return self.scores.double().softmax(-1).amax(-1)

    def right(self) -> NDArray[np.bool_]:
        """Return whether each image's highest logit is its label's, ``(n,)``."""
        return topk_correct(self.scores, self.labels, 1).cpu().numpy()

    def measures(self) -> Evaluation:
        """Return accuracy, loss and calibration."""
        return Evaluation(
            images=len(self.labels),
            loss=F.cross_entropy(self.scores, self.labels).item(),
            auxiliary_loss=self.auxiliary.mean().item(),
            top1=100 * topk_correct(self.scores, self.labels, 1).double().mean().item(),
            top5=100 * topk_correct(self.scores, self.labels, 5).double().mean().item(),
            ece=expected_calibration_error(self.scores.softmax(-1).cpu().numpy(), self.labels.cpu().numpy()),
        )


class Batched(Protocol):
    """What can be evaluated; a :class:`~kattn_cli.data.images.Split`, for instance."""

    def batches(self, size: int) -> Iterator[tuple[Any, Tensor]]:
        """Yield inputs, such as images ``(B, channels, height, width)`` in [0, 1], and their labels ``(B,)``."""


def evaluate(
    model: AttentionModel,
    split: Batched,
    batch_size: int = EVAL_BATCH,
    gather: Callable[[Tensor], Tensor] | None = None,
) -> Evaluation:
    """Return the measures of a model in ``eval`` mode, whose mode is put back afterwards; see :func:`outputs_on`."""
    return outputs_on(model, split, batch_size, gather).measures()


@torch.no_grad()
def outputs_on(
    model: AttentionModel,
    split: Batched,
    batch_size: int = EVAL_BATCH,
    gather: Callable[[Tensor], Tensor] | None = None,
) -> Outputs:
    """Return the model's outputs in ``eval`` mode; its mode is put back afterwards.

    Images that the split leaves out, since they cannot be read, do not count. Where each sample has several labels
    ``(B, queries)``, with logits ``(B, queries, classes)``, every query counts as an image does.

    Args:
        gather: joins ``(n, …)`` of several processes, each of which has a part of the images as its ``split``.

    Raises:
        DataError: if there is no image.
    """
    training = model.training
    model.eval()
    logits, targets, auxiliary = [], [], []
    for images, batch in split.batches(batch_size):
        # Flat: of a sequence that answers several queries, each counts.
        logits.append(model(images).float().flatten(0, -2))
        targets.append(batch.flatten())
        # One copy an image, so that the mean over images weighs a last, smaller batch by its size.
        auxiliary.append(auxiliary_loss(model).double().expand(batch.numel()))
    model.train(training)
    if not logits:
        raise DataError("there is nothing to evaluate that can be read, or there are more processes than samples")
    join = gather or (lambda rows: rows)
    return Outputs(*(join(torch.cat(rows)) for rows in (logits, targets, auxiliary)))
