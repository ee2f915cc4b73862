"""Accuracy, loss and calibration of a classifier on a split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.analysis.statistics import expected_calibration_error
from kattn_cli.data import Split
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


def batches(split: Split, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The split in order, ``size`` images at a time."""
    for start in range(0, len(split), size):
        yield split.images[start : start + size], split.labels[start : start + size]


def topk_correct(logits: Tensor, labels: Tensor, k: int) -> Tensor:
    """Per image, whether the label is among the ``k`` highest logits; ``(B,)`` bool."""
    k = min(k, logits.shape[-1])
    return (logits.topk(k).indices == labels[:, None]).any(-1)


@torch.no_grad()
def evaluate(model: Classifier, split: Split, batch_size: int = EVAL_BATCH) -> Evaluation:
    """Evaluate in ``eval`` mode; the model's mode is put back afterwards."""
    training = model.training
    model.eval()
    logits, auxiliary = [], 0.0
    for images, labels in batches(split, batch_size):
        logits.append(model(images).float())
        auxiliary += auxiliary_loss(model).item() * len(labels)
    model.train(training)
    scores = torch.cat(logits)
    return Evaluation(
        images=len(split),
        loss=F.cross_entropy(scores, split.labels).item(),
        auxiliary_loss=auxiliary / len(split),
        top1=100 * topk_correct(scores, split.labels, 1).double().mean().item(),
        top5=100 * topk_correct(scores, split.labels, 5).double().mean().item(),
        ece=expected_calibration_error(scores.softmax(-1).cpu().numpy(), split.labels.cpu().numpy()),
    )
