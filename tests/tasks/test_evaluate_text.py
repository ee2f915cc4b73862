"""Loss of a language model on windows that do not overlap, against a loop over tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from kattn_cli.data.text import TokenSplit, windows_of
from kattn_cli.errors import DataError
from kattn_cli.models import LanguageModel, auxiliary_loss, build_language_model
from kattn_cli.recipe.model import Decoder
from kattn_cli.recipe.schema import Attention
from kattn_cli.tasks.text.objective import evaluate_text

V, CONTEXT = 13, 6


def split(length: int = 45) -> TokenSplit:
    return windows_of(np.random.default_rng(0).integers(0, V, length).astype(np.uint8), CONTEXT, length)


def model(attention: str = "softmax", **options: object) -> LanguageModel:
    built = build_language_model(
        Decoder(dim=16, depth=2, heads=2, dropout=0.3),
        Attention(name=attention, **options),  # type: ignore[arg-type]
        seq_len=CONTEXT,
        vocabulary=V,
    )
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return built


def by_hand(language_model: LanguageModel, tokens: list[int]) -> tuple[float, float, float]:
    """Loss, and shares of targets that are the likeliest, or of the five likeliest, one token at a time."""
    losses, ranks = [], []
    language_model.eval()
    for begin in range(0, len(tokens) - CONTEXT, CONTEXT):
        for place in range(begin, begin + CONTEXT):
            logits = language_model(torch.tensor([tokens[begin : place + 1]]))[0, -1].tolist()
            target = tokens[place + 1]
            losses.append(math.log(sum(math.exp(one) for one in logits)) - logits[target])
            ranks.append(sum(one > logits[target] for one in logits))
    count = len(losses)
    return sum(losses) / count, sum(rank < 1 for rank in ranks) / count, sum(rank < 5 for rank in ranks) / count


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_equals_a_loop_over_tokens(batch_size: int) -> None:
    language_model, some = model(), split()
    loss, right, among_five = by_hand(language_model, some.tokens.tolist())
    found = evaluate_text(language_model.train(), some, batch_size)
    assert found.images == 7 * CONTEXT
    assert found.loss == pytest.approx(loss, rel=1e-5)
    assert (found.top1, found.top5) == pytest.approx((100 * right, 100 * among_five))
    assert math.isnan(found.ece)
    assert language_model.training


def test_auxiliary_loss_is_that_of_the_windows() -> None:
    """A mean over the windows, in batches of whatever size."""
    language_model, some = model("primal", projection="data-independent", s=3, eta=1.0).eval(), split()
    terms = []
    for tokens, _ in some.batches(1):
        language_model(tokens)
        terms.append(auxiliary_loss(language_model).item())
    assert evaluate_text(language_model, some, 3).auxiliary_loss == pytest.approx(sum(terms) / len(terms), rel=1e-5)


def test_several_processes_are_one() -> None:
    """Each has some of the windows; what they found is joined token by token."""
    language_model, some = model(), split()
    parts = [some.subset(torch.arange(first, 7, 2)) for first in (0, 1)]
    rows: list[Tensor] = []

    def keep(one: Tensor) -> Tensor:
        rows.append(one)
        return one

    for part in parts:
        evaluate_text(language_model, part, gather=keep)
    together = evaluate_text(language_model, parts[0], gather=lambda _: torch.cat(rows))
    whole = evaluate_text(language_model, some)
    assert together.images == whole.images == 7 * CONTEXT
    assert together.loss == pytest.approx(whole.loss)
    assert together.top1 == pytest.approx(whole.top1)


def test_nothing_to_evaluate() -> None:
    with pytest.raises(DataError, match=r"^there is no window of text to evaluate, or there are more processes"):
        evaluate_text(model(), split(CONTEXT))
