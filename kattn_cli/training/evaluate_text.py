"""Loss of a language model on windows of a text that do not overlap: quick, and what an epoch is chosen by.

What reports of language models are made of, the perplexity over sliding windows, is in
:mod:`~kattn_cli.analysis.perplexity`.
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


@torch.no_grad()
def evaluate_text(
    model: AttentionModel,
    split: Batched,
    batch_size: int | None = None,
    gather: Callable[[Tensor], Tensor] | None = None,
) -> Evaluation:
    """Means over the tokens that windows of ``split`` ask for, in ``eval`` mode; the mode is put back afterwards.

    Args:
        batch_size: windows at once; by default as many as have :data:`EVAL_TOKENS` tokens.
        gather: joins ``(n, …)`` of several processes, each of which has a part of the windows as its ``split``.

    Raises:
        DataError: if there is no window.
    """
    training = model.training
    model.eval()
    columns: list[Tensor] = []
    size = batch_size or max(1, EVAL_TOKENS // int(getattr(split, "context", 1)))
    for tokens, following in split.batches(size):
        logits = model(tokens).float().flatten(0, -2)
        targets = following.flatten()
        losses = F.cross_entropy(logits, targets, reduction="none").double()
        right: list[Any] = [topk_correct(logits, targets, k).double() for k in (1, 5)]
        columns.append(torch.stack([losses, auxiliary_loss(model).double().expand_as(losses), *right], 1))
    model.train(training)
    if not columns:
        raise DataError("there is no window of text to evaluate, or there are more processes than windows")
    rows = torch.cat(columns)
    loss, auxiliary, top1, top5 = (gather(rows) if gather else rows).mean(0).tolist()
    return Evaluation(len(rows), loss, auxiliary, 100 * top1, 100 * top5, float("nan"))
