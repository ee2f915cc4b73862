"""Softmax self-attention ("Attention Is All You Need", eq. 1), the baseline of all three papers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import head_width, join_heads, split_projections
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix


class SoftmaxAttention(nn.Module):
    """``softmax(q kᵀ / √d) v``, then the output projection. ``(B, N, C)`` to the same.

    Parameters are named and laid out as in timm's ``Attention``, so its weights load.
    """

    supports_causal = True

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        qkv_bias: bool = True,
        attn_drop: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        head_width(dim, heads)
        self.dim, self.heads, self.causal, self.attn_drop = dim, heads, causal, attn_drop
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        dropout = self.attn_drop if self.training else 0.0
        return self.proj(join_heads(softmax_attention(q, k, v, causal=self.causal, dropout=dropout)))

    def attention_matrix(self, x: Tensor) -> Tensor:
        """``A(q, k)``, ``(B, H, N, N)``."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        return softmax_matrix(q, k, self.causal)

    def flops(self, n: int) -> int:
        """Operations for one sample of ``n`` tokens."""
        projections = flops.linear(n, self.dim, 3 * self.dim, self.qkv.bias is not None)
        return projections + flops.softmax_attention(n, self.dim, self.heads) + flops.linear(n, self.dim, self.dim)
