"""Softmax attention, ``A(q, k) v`` with ``A(q, k) = softmax(q kᵀ / √d)``.

B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.masks import visible


def softmax_matrix(q: Tensor, k: Tensor, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """``A(q, k)``: ``(B, H, N, d)`` twice to ``(B, H, N, N)``, each row a distribution over keys."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    allowed = visible(mask, causal, q.shape[-2], k.shape[-2], q.device)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(-1)


def softmax_attention_naive(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, mask: Tensor | None = None
) -> Tensor:
    """The equation as printed; forms the N × N matrix."""
    return softmax_matrix(q, k, causal, mask) @ v


def softmax_attention(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """PyTorch's fused attention: the same numbers without the N × N matrix. ``(B, H, N, d)`` throughout.

    With ``causal``, queries fewer than the keys are the last ones. The ``slow`` operator has no dropout.
    """
    if version() == "slow" and not dropout:
        return softmax_attention_naive(q, k, v, causal, mask)
    if mask is None and (not causal or q.shape[-2] == k.shape[-2]):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
    allowed = visible(mask, causal, q.shape[-2], k.shape[-2], q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout)
