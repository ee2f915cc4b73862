"""Perplexity of a language model over a window that slides along a text.

Source: RPC-Attention, Appendix A.4: a window of L tokens moves on by one; of the first all positions count, of every
other its last alone, so that each token but the first is predicted once, from as many as L tokens before it. ``stride``
moves the window by more at once, and then its last so many positions count: cheaper, and a little worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

TOKENS_AT_ONCE = 65_536
LOGITS_AT_ONCE = 2**27
"""Of a large vocabulary fewer tokens."""


@dataclass(frozen=True)
class Surprise:
    """What a model made of each token that it was asked for: ``losses`` ``(n,)`` in nats, float64; ``right`` and
    ``among_five`` ``(n,)`` bool: whether it was the likeliest, or one of the five likeliest."""

    losses: Tensor
    right: Tensor
    among_five: Tensor

    @property
    def loss(self) -> float:
        """Mean cross-entropy in nats a token."""
        return self.losses.mean().item()

    @property
    def perplexity(self) -> float:
        """``exp(loss)``."""
        return math.exp(self.loss)

    def bits_per_byte(self, bytes_: float) -> float:
        """Bits that the tokens take, over the ``bytes_`` of the text that they stand for."""
        return self.losses.sum().item() / math.log(2) / bytes_


@dataclass(frozen=True)
class Window:
    """``tokens[start : stop]`` are seen, and the last ``counted`` predictions count."""

    start: int
    stop: int
    counted: int


def windows(tokens: int, length: int, stride: int) -> Iterator[Window]:
    """Yield windows of ``length`` over a text of so many ``tokens``; every token but the first is asked for once."""
    asked = tokens - 1
    stop = min(length, asked)
    yield Window(0, stop, stop)
    while stop < asked:
        following = min(stop + stride, asked)
        yield Window(following - length, following, following - stop)
        stop = following


@torch.no_grad()
def surprise(
    predict: Callable[[Tensor], Tensor],
    tokens: np.ndarray,
    *,
    length: int,
    stride: int = 1,
    device: torch.device,
    progress: Callable[[int], object] | None = None,
) -> Surprise:
    """What ``predict`` makes of each of ``tokens`` ``(T,)`` but the first.

    Args:
        predict: tokens ``(B, N)`` to logits ``(B, N, vocabulary)`` of those that follow.
        length: L, of the window.
        stride: by how much it moves; 1 is the paper's.
        progress: is told how many tokens have been asked for so far.

    Raises:
        ValueError: if there is no token to ask for, or the window or its step is shorter than 1 or longer than it.
    """
    if len(tokens) < 2:
        raise ValueError("a text of one token has none to predict")
    if not 1 <= stride <= length:
        raise ValueError(f"the stride must be between 1 and the window's {length}, not {stride}")
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    asked = 0
    every = windows(len(tokens), length, stride)
    batch = [next(every)]
    while batch:
        rows = np.stack([tokens[one.start : one.stop + 1] for one in batch]).astype(np.int64)
        seen = torch.from_numpy(rows).to(device)
        logits = predict(seen[:, :-1])
        counted = torch.tensor([one.counted for one in batch], device=device)
        found.append(_judged(logits, seen[:, 1:], counted))
        asked += sum(one.counted for one in batch)
        if progress:
            progress(asked)
        at_once = min(TOKENS_AT_ONCE, LOGITS_AT_ONCE // logits.shape[-1]) // length
        batch = list(islice(every, max(1, at_once)))
    losses, right, among_five = (torch.cat(column) for column in zip(*found, strict=True))
    return Surprise(losses, right, among_five)


def _judged(logits: Tensor, targets: Tensor, counted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return losses and ranks of each window's last ``counted`` ``(B,)`` predictions, one window after the other."""
    most = int(counted.max())
    kept = torch.arange(most, 0, -1, device=counted.device) <= counted[:, None]
    logits, targets = logits[:, -most:][kept].float(), targets[:, -most:][kept]
    losses = F.cross_entropy(logits, targets, reduction="none").double().cpu()
    likelier = (logits > logits.gather(-1, targets[:, None])).sum(-1).cpu()
    return losses, likelier < 1, likelier < 5
