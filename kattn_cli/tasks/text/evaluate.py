"""Loss of a language model on windows of a text that do not overlap: quick, and what an epoch is chosen by.

What reports of language models are made of, the perplexity over sliding windows, is in
:mod:`~kattn_cli.tasks.text.windows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel, auxiliary_loss
from kattn_cli.training.evaluate import Batched, Evaluation, topk_correct

EVAL_TOKENS = 32_768
"""At once, whatever the length of a window."""

EVAL_LOGITS = 2**27
"""At once, whatever the size of the vocabulary."""


def windows_at_once(context: int, vocabulary: int) -> int:
    """How many windows of ``context`` tokens to evaluate at once."""
    return max(1, min(EVAL_TOKENS, EVAL_LOGITS // vocabulary) // context)


@torch.no_grad()
def evaluate_text(
    model: AttentionModel,
    split: Batched,
    batch_size: int = 64,
    gather: Callable[[Tensor], Tensor] | None = None,
) -> Evaluation:
    """Means over the tokens that windows of ``split`` ask for, in ``eval`` mode; the mode is put back afterwards.

    Args:
        batch_size: windows at once; see :func:`windows_at_once`.
        gather: joins ``(n, …)`` of several processes, each of which has a part of the windows as its ``split``.

    Raises:
        DataError: if there is no window.
    """
    training = model.training
    model.eval()
    columns: list[Tensor] = []
    for tokens, following in split.batches(batch_size):
        logits = model(tokens).float().flatten(0, -2)
        targets = following.flatten()
        losses = F.cross_entropy(logits, targets, reduction="none").double()
        right: list[Any] = [topk_correct(logits, targets, k).double() for k in (1, 5)]
        columns.append(torch.stack([losses, auxiliary_loss(model).double().expand_as(losses), *right], 1))
    model.train(training)
    if not columns:
        raise DataError("there is no window of text to evaluate, or there are more processes than windows")
    rows = gather(torch.cat(columns)) if gather else torch.cat(columns)
    loss, auxiliary, top1, top5 = rows.mean(0).tolist()
    return Evaluation(len(rows), loss, auxiliary, 100 * top1, 100 * top5, float("nan"))
