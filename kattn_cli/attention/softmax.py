"""Softmax self-attention ("Attention Is All You Need", eq. 1), the baseline of all three papers."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads
from kattn_cli.attention.key_value_cache import KeyValueCache, extend
from kattn_cli.attention.mechanism import QKVAttention
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix, standardised


class SoftmaxAttention(QKVAttention):
    """``softmax(q kᵀ / √d) v``, then the output projection. ``(B, N, C)`` to the same.

    ``standardise``: q and k of each token and head get mean 0 and deviation 1, as in the program with which the RPC
    authors measure the projection error. ``tied_start``: queries begin as the keys, as in symmetric attention, and are
    free to leave them.

    Raises:
        ValueError: if heads are one wide, and have no deviation.
    """

    supports_causal = True

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        standardise: bool = False,
        tied_start: bool = False,
        qkv_bias: bool = True,
        attn_drop: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        if standardise:
            self.require_deviation()
        self.standardise, self.tied_start, self.attn_drop = standardise, tied_start, attn_drop
        self.begin()

    @torch.no_grad()
    def begin(self) -> None:
        """Copy the keys' weights to the queries, if they are to begin alike."""
        if self.tied_start:
            for parameter in self.qkv.parameters():
                parameter[: self.dim] = parameter[self.dim : 2 * self.dim]

    def projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, ``(B, H, N, d)`` each, the first two standardised if they are to be."""
        q, k, v = super().projected(x)
        return (standardised(q), standardised(k), v) if self.standardise else (q, k, v)

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        dropout = self.attn_drop if self.training else 0.0
        return softmax_attention(q, k, v, causal=self.causal, mask=mask, dropout=dropout)

    def decode(self, x: Tensor, state: KeyValueCache | None = None) -> tuple[Tensor, KeyValueCache]:
        """Return the outputs for the next tokens ``(B, n, C)``, and the cache to give back with those that follow."""
        self.require_causal()
        q, k, v = self.projected(x)
        state = extend(state, k, v)
        several = x.shape[1] > 1  # a single token sees all there are, which needs no mask
        return self.proj(join_heads(softmax_attention(q, *state, causal=several))), state

    def remember(self, x: Tensor, state: KeyValueCache | None = None) -> KeyValueCache:
        """Return the cache with tokens ``(B, n, C)`` appended, but no outputs, which would not be linear in n."""
        self.require_causal()
        _, k, v = self.projected(x)
        return extend(state, k, v)

    def kernel_inputs(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values as they meet in the softmax, ``(B, H, N, d)`` each."""
        return self.projected(x)

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``A(q, k)``, ``(B, H, N, N)``."""
        q, k, _ = self.projected(x)
        return softmax_matrix(q, k, self.causal, mask)

    def operator_flops(self, n: int) -> int:
        standardisation = 2 * flops.standardisation(n, self.dim) if self.standardise else 0
        return standardisation + flops.softmax_attention(n, self.dim, self.heads)
