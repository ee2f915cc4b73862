"""How a model is evaluated while it trains, and by what an epoch is chosen: a matter of its data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kattn_cli.data import LoadedData, TextData
from kattn_cli.training.evaluate import Evaluation, evaluate
from kattn_cli.training.evaluate_text import evaluate_text, windows_at_once


def evaluator(data: LoadedData) -> Callable[..., Evaluation]:
    """``(model, split, gather=…)`` to what the model is worth on the split."""
    if isinstance(data, TextData):
        return partial(evaluate_text, batch_size=windows_at_once(data.context, data.classes))
    return evaluate


def in_order_of_merit(data: LoadedData) -> Callable[[float, float], Any]:
    """Of top-1 accuracy and loss, a key that is greater for the better: language models are chosen by their loss."""
    return _by_loss if isinstance(data, TextData) else _by_accuracy


def _by_loss(top1: float, loss: float) -> float:
    return -loss


def _by_accuracy(top1: float, loss: float) -> tuple[float, float]:
    return top1, -loss
