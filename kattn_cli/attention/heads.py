"""Between ``(B, N, C)`` and ``(B, H, N, d)``."""

from __future__ import annotations

import torch
from torch import Tensor


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Return ``(B, H, N, d)`` from ``(B, N, H·d)``."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def split_projections(x: Tensor, heads: int, count: int) -> tuple[Tensor, ...]:
    """Return ``count`` tensors ``(B, H, N, d)`` from ``(B, N, count·H·d)``: queries, keys and values, say."""
    return x.unflatten(-1, (count, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def join_heads(x: Tensor) -> Tensor:
    """Return ``(B, N, H·d)`` from ``(B, H, N, d)``."""
    return x.transpose(1, 2).flatten(2)


def unit_values(q: Tensor) -> Tensor:
    """Return one unit vector for each token, ``(B, H, N, N)``: as values, they make attention return its weights."""
    n = q.shape[-2]
    return torch.eye(n, dtype=q.dtype, device=q.device).expand(*q.shape[:2], n, n)
