"""Accuracy, loss and calibration of a classifier on a split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.analysis.statistics import expected_calibration_error
from kattn_cli.data import Split
from kattn_cli.errors import DataError
from kattn_cli.models import Classifier, auxiliary_loss

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


def topk_correct(logits: Tensor, labels: Tensor, k: int) -> Tensor:
    """Per image, whether the label is among the ``k`` highest logits; ``(B,)`` bool."""
    k = min(k, logits.shape[-1])
    return (logits.topk(k).indices == labels[:, None]).any(-1)


@torch.no_grad()
def evaluate(
    model: Classifier, split: Split, batch_size: int = EVAL_BATCH, gather: Callable[[Tensor], Tensor] | None = None
) -> Evaluation:
    """Evaluate in ``eval`` mode; the model's mode is put back afterwards.

    What counts are the images that the split yields, which leaves out those that cannot be read.

    Args:
        gather: joins ``(n, …)`` of several processes, each of which has a part of the images as its ``split``.
    """
    training = model.training
    model.eval()
    logits, targets, auxiliary = [], [], []
    for images, batch in split.batches(batch_size):
        logits.append(model(images).float())
        targets.append(batch)
        auxiliary.append(auxiliary_loss(model).double().expand(len(batch)))
    model.train(training)
    if not logits:
        raise DataError("there is no image to evaluate that can be read, or there are more processes than images")
    join = gather or (lambda rows: rows)
    scores, labels, terms = (join(torch.cat(rows)) for rows in (logits, targets, auxiliary))
    return Evaluation(
        images=len(labels),
        loss=F.cross_entropy(scores, labels).item(),
        auxiliary_loss=terms.mean().item(),
        top1=100 * topk_correct(scores, labels, 1).double().mean().item(),
        top5=100 * topk_correct(scores, labels, 5).double().mean().item(),
        ece=expected_calibration_error(scores.softmax(-1).cpu().numpy(), labels.cpu().numpy()),
    )
