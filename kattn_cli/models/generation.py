"""Text generation by a language model, token by token, with the state of its mechanisms where they keep one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from kattn_cli.attention.mechanism import refuse_longer
from kattn_cli.models.sequence_model import DecoderState, LanguageModel


class Reading:
    """A text as a model reads it on, within its context.

    Where the text passes the context, which is where its learned places end, the model begins anew with the last half
    of a context, and reads on from there.

    Args:
        model: in ``eval`` mode.
        with_state: whether to keep the state of its mechanisms, so that a token is read once; else all that it sees
            is read again with every token.
    """

    def __init__(self, model: LanguageModel, *, with_state: bool) -> None:
        self.model, self.with_state = model, with_state
        self.context = len(model.backbone.position)
        self.seen: list[int] = []
        self.state: DecoderState | None = None

    @torch.inference_mode()
    def read(self, tokens: Sequence[int]) -> Tensor:
        """Return the logits of what follows ``tokens``, one or more, ``(vocabulary,)`` in float64 on the CPU."""
        fresh = list(tokens)
        if len(self.seen) + len(fresh) > self.context:
            fresh = (self.seen + fresh)[-reread(self.context) :]
            self.seen, self.state = [], None
        self.seen += fresh
        if self.with_state:
            logits, self.state = self.model.decode(self._batch(fresh), self.state)
        else:
            logits = self.model(self._batch(self.seen))
        return logits[0, -1].double().cpu()

    def _batch(self, tokens: list[int]) -> Tensor:
        return torch.tensor([tokens], device=self.model.device)


def generate(
    model: LanguageModel,
    prompt: Sequence[int],
    count: int,
    *,
    temperature: float,
    top_k: int | None,
    generator: np.random.Generator,
    with_state: bool | None = None,
) -> Iterator[int]:
    """Yield ``count`` tokens that follow ``prompt``, each as soon as :func:`choose` has chosen it.

    Args:
        model: in ``eval`` mode.
        with_state: see :class:`Reading`; by default where every mechanism can.

    Raises:
        ValueError: at once, if the prompt is empty or longer than the model's context.
    """
    reading = Reading(model, with_state=decodes(model) if with_state is None else with_state)
    if not prompt:
        raise ValueError("the prompt is empty")
    refuse_longer(len(prompt), reading.context)
    return _following(reading, prompt, count, temperature, top_k, generator)


def _following(
    reading: Reading,
    prompt: Sequence[int],
    count: int,
    temperature: float,
    top_k: int | None,
    generator: np.random.Generator,
) -> Iterator[int]:
    fresh = prompt
    for _ in range(count):
        token = choose(reading.read(fresh), temperature, top_k, generator)
        yield token
        fresh = [token]


def choose(logits: Tensor, temperature: float, top_k: int | None, generator: np.random.Generator) -> int:
    """Return a token drawn from ``softmax(logits / temperature)``; ``logits`` ``(vocabulary,)``.

    Args:
        temperature: 0 takes the likeliest and draws nothing.
        top_k: only among so many of the likeliest; None among all.
    """
    if temperature == 0:
        return int(logits.argmax())
    # Sorted by token, so that the cumulative sum has one order with top_k and without.
    kept = logits.topk(min(top_k or len(logits), len(logits))).indices.sort().values
    among = logits[kept]
    # The greatest is taken off, so that exp cannot overflow at low temperatures.
    cumulative = ((among - among.max()) / temperature).exp().cumsum(0)
    place = int(torch.searchsorted(cumulative, generator.random() * cumulative[-1], right=True))
    # Rounding may put the draw at the very end.
    return int(kept[min(place, len(kept) - 1)])


def decodes(model: LanguageModel) -> bool:
    """Return whether every mechanism keeps a state from which it reads on."""
    return all(hasattr(mechanism, "decode") for mechanism in model.mechanisms())


def reread(context: int) -> int:
    """Return how many of the last tokens are read again where a text passes the context."""
    return max(context // 2, 1)
