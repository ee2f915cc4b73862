"""Linformer: softmax attention over keys and values projected to a fixed length (Wang et al. 2020, eq. 7)."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import split_projections, unit_values
from kattn_cli.attention.mechanism import QKVAttention, refuse_longer
from kattn_cli.kernels.linformer import linformer_attention


class LinformerAttention(QKVAttention):
    """``softmax(q (E k)ᵀ / √d) F v``, then the output projection. ``(B, N, C)`` to the same, N at most ``seq_len``.

    Args:
        k: rows of ``E`` and ``F``, at most ``seq_len``.
        sharing: ``none``: each head has an ``E`` and an ``F``; ``headwise``: one of each for all heads;
            ``key-value``: one matrix for all heads, keys and values (the paper's section 4).
        convention: ``reference``: each head has one matrix, for keys and values both.

    Raises:
        ValueError: if ``sharing`` is given with ``convention: reference``; in ``forward``, if N > ``seq_len``.

    The paper does not say how ``E`` and ``F`` begin: here with variance 1/seq_len, which keeps that of keys and values.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        k: Annotated[int, Field(ge=1)] = 256,
        sharing: Literal["none", "headwise", "key-value"] = "none",
        convention: Literal["paper", "reference"] = "paper",
        qkv_bias: bool = True,
    ) -> None:
        if convention == "reference" and sharing != "none":
            raise ValueError(f"sharing = {sharing}, but convention = reference has one projection in each head")
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        self.k, self.seq_len = min(k, seq_len), seq_len
        shape = (heads if sharing == "none" else 1, self.k, seq_len)
        for_both = sharing == "key-value" or convention == "reference"
        self.e = nn.Parameter(torch.empty(shape))
        self.f = None if for_both else nn.Parameter(torch.empty(shape))
        for projection in (self.e, self.f):
            if projection is not None:
                nn.init.normal_(projection, std=seq_len**-0.5)

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        refuse_longer(q.shape[-2], self.seq_len)
        return linformer_attention(q, k, v, self.e, self.e if self.f is None else self.f, mask=mask)

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``softmax(q (E k)ᵀ / √d) F``, ``(B, H, N, N)``: what multiplies the values."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        return self.operate(q, k, unit_values(q), mask)

    def operator_flops(self, n: int) -> int:
        """Count two projections along the sequence, and attention of N queries to k keys."""
        pairs = n * self.k
        return 4 * pairs * self.dim + 4 * pairs * self.dim + self.heads * pairs + flops.softmax(self.heads * n, self.k)
