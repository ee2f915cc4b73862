"""Softmax attention, ``A(q, k) v`` with ``A(q, k) = softmax(q kᵀ / √d)``.

B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import check_mask
from kattn_cli.kernels.masks import visible
from kattn_cli.kernels.precision import exact, exactly, full_precision


@full_precision
def softmax_matrix(q: Tensor, k: Tensor, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """Return ``A(q, k)``, ``(B, H, N, N)``, for ``(B, H, N, d)`` twice; each row is a distribution over keys.

    In float32 or better, as the operator computes it inside: float16 ends where a product of vectors need not.
    """
    check_mask("softmax attention", mask, k)
    scores = exact(q) @ exact(k).mT / math.sqrt(q.shape[-1])
    allowed = visible(mask, causal, q.shape[-2], k.shape[-2], q.device)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)  # `visible` leaves each query a key
    return scores.softmax(-1)


@exactly
def standardised(z: Tensor) -> Tensor:
    """Return ``z`` with mean 0 and (unbiased) deviation 1 of each token and head, so that ``‖z‖² = d − 1``.

    As the RPC authors' program does with queries and keys. Where all entries are equal, there is no deviation: zeros.
    """
    # The clamp is for padding, which may be nothing but zeros.
    deviation = z.std(-1, keepdim=True).clamp(min=torch.finfo(z.dtype).tiny)
    return (z - z.mean(-1, keepdim=True)) / deviation


@exactly
def softmax_attention_naive(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, mask: Tensor | None = None
) -> Tensor:
    """Return the equation as printed; forms the N × N matrix."""
    return softmax_matrix(q, k, causal, mask) @ v


def softmax_attention(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Return softmax attention, ``(B, H, N, d)`` throughout, by PyTorch's fused operator, without the N × N matrix.

    With ``causal``, queries fewer than the keys are the last ones. The ``slow`` operator has no dropout.

    On a CPU, torch's backward pass takes the scores anew and, unless √d is a power of two, rounds them otherwise than
    the forward pass did. Each weight is then off by the rounding of its score, 1 % in float32 for scores of 10⁵; and
    from 10⁹ on, which takes entries of 10⁴, gradients are not numbers, where those of the slow operator are.
    """
    check_mask("softmax attention", mask, k)
    if version() == "slow" and not dropout:
        return softmax_attention_naive(q, k, v, causal, mask)
    # Torch's own causal flag counts queries from the first key, ours from the last: equal for as many of both.
    if mask is None and (not causal or q.shape[-2] == k.shape[-2]):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
    allowed = visible(mask, causal, q.shape[-2], k.shape[-2], q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout)
