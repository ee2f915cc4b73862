"""Which tokens there are, and which may be seen.

A mask is ``(B, N)``, True where there is a token and False where a sequence is padded. Padding never changes
what a mechanism computes for the tokens; what it returns at the padding is finite and means nothing.
One row, ``(1, N)``, is the same padding for all samples; what is no such mask is refused.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.kernels.entry import check_mask
from kattn_cli.kernels.precision import exact, exact_dtype


def without_padding(z: Tensor, mask: Tensor | None) -> Tensor:
    """Return ``z``, ``(B, H, N, d)``, with zeros at the padding, whatever stood there."""
    check_mask("attention", mask, z)
    return z if mask is None else z.masked_fill(~mask[:, None, :, None], 0)


def token_counts(z: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    """Return the tokens of each sample, ``(B or 1, 1, 1, 1)``; ``causal``: up to each token, ``(B or 1, 1, N, 1)``.

    At least one everywhere, so that it can be divided by. In float32 or better: bfloat16 cannot count beyond 256.
    """
    check_mask("attention", mask, z)
    there = z.new_ones(1, z.shape[-2], dtype=exact_dtype(z)) if mask is None else mask.to(exact_dtype(z))
    counts = there.cumsum(-1)[:, None, :, None] if causal else there.sum(-1)[:, None, None, None]
    return counts.clamp(min=1)


def total(z: Tensor, causal: bool = False) -> Tensor:
    """Return the sum over tokens, ``(B, H, 1, d)``; with ``causal`` up to each token, ``(B, H, N, d)``.

    In float32 or better: a sum over many tokens leaves the range of float16, and stops growing in bfloat16.
    """
    return exact(z).cumsum(-2) if causal else exact(z).sum(-2, keepdim=True)


def visible(mask: Tensor | None, causal: bool, queries: int, keys: int, device: torch.device) -> Tensor | None:
    """Return which keys each query may see, ``(B or 1, 1, queries or 1, keys)``; None where it may see all.

    With ``causal`` the queries are the last ones of the keys. No query sees nothing: a softmax over nothing is
    not a number. With ``causal`` each sees itself, and a sample without any token sees all its padding.
    """
    if mask is not None:
        mask = mask[:, None, None, :]
    if not causal:
        return None if mask is None else mask | ~mask.any(-1, keepdim=True)
    past = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)[None, None]
    if mask is None:
        return past
    itself = past & ~torch.ones_like(past).tril(keys - queries - 1)
    return (past & mask) | itself
