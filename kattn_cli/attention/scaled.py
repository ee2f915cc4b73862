"""Scaled Attention: softmax attention on values from which a learned mixture of values is taken away.

Source: RPC-Attention paper, eq. 12, Remark 3, Appendix E.1. In kernel PCA the mixture centres the keys' images;
here it is learned: freely (``variant: matrix``, tied to positions) or as α times symmetric attention (``scalar``).
Both start at S = 0, which is softmax attention.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.key_value_cache import KeyValueCache, extend
from kattn_cli.attention.mechanism import QKVAttention, refuse_longer
from kattn_cli.kernels.scaled import learned_scaled_values, learned_scaling, symmetric_scaled_values, symmetric_scaling
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix

ScaledCache = tuple[KeyValueCache, Tensor]
"""Keys and values so far, and the rows of ``(I − S) v``, ``(B, H, N, d)`` each."""


class ScaledAttention(QKVAttention):
    """``A(q, k) (I − S) v``, then the output projection. ``(B, N, C)`` to the same.

    ``attn_drop`` acts on ``A(q, k)``.

    Raises:
        ValueError: with ``variant: matrix``, for more tokens than ``seq_len``.
    """

    supports_causal = True

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        variant: Literal["scalar", "matrix"] = "scalar",
        qkv_bias: bool = True,
        attn_drop: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        self.variant, self.seq_len, self.attn_drop = variant, seq_len, attn_drop
        if variant == "matrix":
            self.s = nn.Parameter(torch.zeros(heads, seq_len, seq_len))
        else:
            self.alpha = nn.Parameter(torch.zeros(1))

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        dropout = self.attn_drop if self.training else 0.0
        values = self._scaled_values(k, v, self.causal, mask)
        return softmax_attention(q, k, values, causal=self.causal, mask=mask, dropout=dropout)

    def decode(self, x: Tensor, state: ScaledCache | None = None) -> tuple[Tensor, ScaledCache]:
        """Return the outputs for the next tokens ``(B, n, C)``, and the cache to give back with those that follow."""
        self.require_causal()
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        cache, past = (None, v[..., :0, :]) if state is None else state
        cache = extend(cache, k, v)
        values = torch.cat((past, self._scaled_values(*cache, True, None, last=x.shape[1])), -2)
        return self.proj(join_heads(softmax_attention(q, cache[0], values, causal=True))), (cache, values)

    def kernel_inputs(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and ``(I − S) v``, ``(B, H, N, d)`` each."""
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        return q, k, self._scaled_values(k, v, self.causal, None)

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``A(q, k) (I − S)``, ``(B, H, N, N)``."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        if self.variant == "matrix":
            refuse_longer(x.shape[1], self.seq_len)
            scaling = learned_scaling(self.s, x.shape[1], causal=self.causal, mask=mask)
        else:
            scaling = symmetric_scaling(k, self.alpha, causal=self.causal, mask=mask)
        attention = softmax_matrix(q, k, self.causal, mask)
        return attention - attention @ scaling.to(attention.dtype)

    def operator_flops(self, n: int) -> int:
        """Count softmax attention, ``S v`` and a subtraction; S is a matrix, or α times another softmax attention."""
        attention = flops.softmax_attention(n, self.dim, self.heads)
        mixture = 2 * n * n * self.dim if self.variant == "matrix" else attention + n * self.dim
        return attention + mixture + n * self.dim

    def _scaled_values(
        self, k: Tensor, v: Tensor, causal: bool, mask: Tensor | None, last: int | None = None
    ) -> Tensor:
        """Return ``(I − S) v``, or its ``last`` rows."""
        if self.variant == "matrix":
            refuse_longer(v.shape[-2], self.seq_len)
            return learned_scaled_values(v, self.s, causal=causal, mask=mask, last=last)
        return symmetric_scaled_values(k, v, self.alpha, causal=causal, mask=mask, last=last)
