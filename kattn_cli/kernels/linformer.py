"""Linformer attention: keys and values projected along the sequence to a fixed length.

Source: Wang et al. 2020, "Linformer", eq. 7.
B: batch, H: heads, N: tokens, k: projected length, d: head width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import token_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exactly
from kattn_cli.kernels.softmax import softmax_attention


def linformer_attention(q: Tensor, k: Tensor, v: Tensor, e: Tensor, f: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Return ``softmax(q (E k)ᵀ / √d) F v``, ``(B, H, N, d)`` throughout.

    ``e``, ``f``: ``(H or 1, k, at least N)``, of which the first N columns act. Padding is projected as zeros.
    """
    mask = token_mask("Linformer", mask, k)
    if version() == "slow":
        return linformer_attention_naive(q, k, v, e, f, mask=mask)
    n = q.shape[-2]
    keys, values = e[..., :n] @ without_padding(k, mask), f[..., :n] @ without_padding(v, mask)
    return softmax_attention(q, keys, values)


@exactly
def linformer_attention_naive(
    q: Tensor, k: Tensor, v: Tensor, e: Tensor, f: Tensor, *, mask: Tensor | None = None
) -> Tensor:
    """Return the equation for one sample and head after the other, on its tokens alone; zeros at the padding."""
    out = torch.zeros_like(v)
    _, heads, n, d = q.shape
    for b in range(len(q)):
        there = torch.ones(n, dtype=torch.bool, device=q.device) if mask is None else mask[b]
        for h in range(heads):
            e_h, f_h = e[h % len(e), :, :n][:, there], f[h % len(f), :, :n][:, there]
            scores = q[b, h, there] @ (e_h @ k[b, h, there]).T / math.sqrt(d)
            out[b, h, there] = scores.softmax(-1) @ (f_h @ v[b, h, there])  # eq. 7
    return out
