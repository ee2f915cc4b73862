"""Symmetric softmax attention: the queries are the keys (RPC-Attention paper, §3; "SymViT").

One projection fewer than softmax attention: ``2C`` outputs, keys then values.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.key_value_cache import KeyValueCache, extend
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix, standardised


class SymmetricAttention(AttentionMechanism):
    """``softmax(k kᵀ / √d) v``, then the output projection. ``(B, N, C)`` to the same.

    ``standardise``: as in :class:`~kattn_cli.attention.softmax.SoftmaxAttention`, of the keys.

    Raises:
        ValueError: if keys are to be standardised in heads that are one wide, and have no deviation.
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
        qkv_bias: bool = True,
        attn_drop: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__(dim, heads, causal)
        if standardise:
            self.require_deviation()
        self.standardise, self.attn_drop = standardise, attn_drop
        self.kv = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        k, v = self._projected(x)
        dropout = self.attn_drop if self.training else 0.0
        return self.proj(join_heads(softmax_attention(k, k, v, causal=self.causal, mask=mask, dropout=dropout)))

    def decode(self, x: Tensor, state: KeyValueCache | None = None) -> tuple[Tensor, KeyValueCache]:
        """Return the outputs for the next tokens ``(B, n, C)``, and the cache to give back with those that follow."""
        self.require_causal()
        k, v = self._projected(x)
        state = extend(state, k, v)
        several = x.shape[1] > 1  # a single token sees all there are, which needs no mask
        return self.proj(join_heads(softmax_attention(k, *state, causal=several))), state

    def remember(self, x: Tensor, state: KeyValueCache | None = None) -> KeyValueCache:
        """Return the cache with tokens ``(B, n, C)`` appended, but no outputs, which would not be linear in n."""
        self.require_causal()
        k, v = self._projected(x)
        return extend(state, k, v)

    def kernel_inputs(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, which are the queries too, twice, and values, ``(B, H, N, d)`` each, as in the softmax."""
        k, v = self._projected(x)
        return k, k, v

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``A(k, k)``, ``(B, H, N, N)``."""
        k, _ = self._projected(x)
        return softmax_matrix(k, k, self.causal, mask)

    def flops(self, n: int) -> int:
        """Return the operations for one sample of ``n`` tokens."""
        projections = flops.linear(n, self.dim, 2 * self.dim, self.kv.bias is not None)
        projections += flops.standardisation(n, self.dim) if self.standardise else 0
        return projections + flops.softmax_attention(n, self.dim, self.heads) + flops.linear(n, self.dim, self.dim)

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor]:
        k, v = split_projections(self.kv(x), self.heads, 2)
        return (standardised(k) if self.standardise else k), v
