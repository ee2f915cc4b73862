"""The next token of a text: cross-entropy, by which the best epoch is chosen, too."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kattn_cli.data.text import TokenSplit
from kattn_cli.models import AttentionModel
from kattn_cli.recipe.train import Train
from kattn_cli.tables.measures import LOSS
from kattn_cli.tasks.images.objective import Classification
from kattn_cli.tasks.text.evaluate import evaluate_text, windows_at_once
from kattn_cli.training.evaluate import Batched, Evaluation
from kattn_cli.training.feed import Feed, TextFeed
from kattn_cli.training.plan import Plan


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
        """See :func:`~kattn_cli.tasks.text.evaluate.evaluate_text`."""
        return evaluate_text(model, split, batch_size=self.at_once, gather=gather)
