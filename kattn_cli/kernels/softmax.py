"""Softmax attention, ``A(q, k) v`` with ``A(q, k) = softmax(q kᵀ / √d)``.

B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def softmax_matrix(q: Tensor, k: Tensor, causal: bool = False) -> Tensor:
    """``A(q, k)``: ``(B, H, N, d)`` twice to ``(B, H, N, N)``, each row a distribution over keys."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        n = scores.shape[-1]
        future = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    return scores.softmax(-1)


def softmax_attention_naive(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """The equation as printed; forms the N × N matrix."""
    return softmax_matrix(q, k, causal) @ v


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, dropout: float = 0.0) -> Tensor:
    """PyTorch's fused attention: the same numbers without the N × N matrix. ``(B, H, N, d)`` throughout."""
    return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
