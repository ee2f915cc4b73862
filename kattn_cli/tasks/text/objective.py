"""The next token of a text: cross-entropy, by which the best epoch is chosen, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.data.text import TokenSplit
from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel, auxiliary_loss
from kattn_cli.recipe.train import Train
from kattn_cli.tables.measures import LOSS
from kattn_cli.tasks.images.objective import Classification
from kattn_cli.training.evaluate import Batched, Evaluation, topk_correct
from kattn_cli.training.feed import Feed, TextFeed
from kattn_cli.training.plan import Plan

EVAL_TOKENS = 32_768
"""At once, whatever the length of a window."""

EVAL_LOGITS = 2**27
"""At once, whatever the size of the vocabulary."""


def windows_at_once(context: int, vocabulary: int) -> int:
    """Return how many windows of ``context`` tokens to evaluate at once."""
    return max(1, min(EVAL_TOKENS, EVAL_LOGITS // vocabulary) // context)


@torch.no_grad()
def evaluate_text(
    model: AttentionModel,
    split: Batched,
    batch_size: int = 64,
    gather: Callable[[Tensor], Tensor] | None = None,
) -> Evaluation:
    """Return means over the tokens that windows of ``split`` ask for, in ``eval`` mode; the mode is put back.

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


class Language(Classification):
    """Windows of ``context`` tokens of a ``vocabulary``; every token has a class, the one that follows it."""

    measure = LOSS

    def __init__(self, context: int, vocabulary: int) -> None:
        self.at_once = windows_at_once(context, vocabulary)

    def feed(self, split: TokenSplit, plan: Plan, settings: Train, device: torch.device) -> Feed:
        """Return windows that begin elsewhere in each epoch."""
        return TextFeed(split, plan)

    def evaluate(
        self, model: AttentionModel, split: Batched, gather: Callable[[Tensor], Tensor] | None = None
    ) -> Evaluation:
        """See :func:`evaluate_text`."""
        return evaluate_text(model, split, batch_size=self.at_once, gather=gather)
