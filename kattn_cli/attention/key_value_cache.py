"""Decoding with keys and values kept: what softmax attention must remember grows with every token."""

from __future__ import annotations

import torch
from torch import Tensor

KeyValueCache = tuple[Tensor, Tensor]
"""Keys and values so far, ``(B, H, N, d)`` each."""


def extend(cache: KeyValueCache | None, k: Tensor, v: Tensor) -> KeyValueCache:
    """The cache with the keys and values of the next tokens behind it."""
    return (k, v) if cache is None else (torch.cat((cache[0], k), -2), torch.cat((cache[1], v), -2))
