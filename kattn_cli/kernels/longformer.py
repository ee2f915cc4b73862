"""Sliding-window attention, whose first tokens every token may see.

Source: Beltagy et al. 2020, "Longformer: The Long-Document Transformer", §3.1.
B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kattn_cli.kernels.block_sparse import block_sparse_attention, window_blocks
from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import token_mask
from kattn_cli.kernels.precision import exactly


def within_window(query: Tensor, key: Tensor, window: int, causal: bool) -> Tensor:
    """Return whether a key is within half a window of a query, by their positions; with ``causal`` not after it."""
    ahead = key - query
    return (ahead >= -(window // 2)) & (ahead <= (0 if causal else window // 2))


@exactly
def sliding_window_attention_naive(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int,
    *,
    global_keys: int = 0,
    causal: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """Return softmax attention, ``(B, H, N, d)``, under a banded N × N mask."""
    n = q.shape[-2]
    position = torch.arange(n, device=q.device)
    allowed = within_window(position[:, None], position, window, causal) | (position < global_keys)
    if mask is not None:
        allowed = allowed & mask[:, None, None, :] | torch.eye(n, dtype=torch.bool, device=q.device)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~allowed, -math.inf).softmax(-1) @ v


def sliding_window_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int,
    *,
    global_keys: int = 0,
    causal: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the same in blocks of half a window, each of which sees itself, its neighbours and the first keys."""
    mask = token_mask("sliding-window attention", mask, k)
    if not v.shape[-2]:
        return v
    if version() == "slow":
        return sliding_window_attention_naive(q, k, v, window, global_keys=global_keys, causal=causal, mask=mask)
    size, blocks = window_layout(q.shape[-2], window, global_keys, causal, q.device)

    def sees(query: Tensor, key: Tensor) -> Tensor:
        return within_window(query, key, window, causal) | (key < global_keys)

    return block_sparse_attention(q, k, v, blocks[None], size, sees=sees, mask=mask)


def window_layout(
    n: int, window: int, global_keys: int, causal: bool, device: torch.device | None = None
) -> tuple[int, Tensor]:
    """Return the size of blocks of half a window, and which blocks each sees, ``(R, M)``."""
    size = max(1, min(window // 2, n))
    rows = -(-n // size)
    reach = max(0, min(1, rows - 1))
    first = -(-min(global_keys, n) // size)
    return size, window_blocks(rows, reach, 0 if causal else reach, first, device)
