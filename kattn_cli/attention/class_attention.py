"""Class attention: only the class token, the first, attends; the others pass through. Linear in N.

Source: "Going deeper with Image Transformers" (CaiT; Touvron et al. 2021), class-attention
layers. XCiT and ToST end in two layers of it, after mechanisms in which the class token plays no part.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_heads, split_projections
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix


class ClassAttention(AttentionMechanism):
    """``softmax(q₀ kᵀ / √d) v``, projected, in the first token's place. ``(B, N, C)`` to the same."""

    def __init__(self, dim: int, heads: int, *, seq_len: int, causal: bool = False, qkv_bias: bool = True) -> None:
        super().__init__(dim, heads, causal)
        self.qkv = torch.nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = torch.nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        q, k, v = self._project(x)
        attended = self.proj(join_heads(softmax_attention(q, k, v, mask=mask)))
        # The other tokens pass through; under autocast the attended one has another type.
        return torch.cat((attended, x[:, 1:].to(attended.dtype)), 1)

    def class_map(self, x: Tensor) -> Tensor:
        """Return ``softmax(q₀ kᵀ / √d)``, ``(B, H, N)``: how much CLS takes of each token, itself first."""
        q, k, _ = self._project(x)
        return softmax_matrix(q, k)[:, :, 0]

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weights = self.qkv.weight.split((self.dim, 2 * self.dim))
        biases = (None, None) if self.qkv.bias is None else self.qkv.bias.split((self.dim, 2 * self.dim))
        # CLS alone asks: one product of q for it, not for all tokens.
        q = split_heads(F.linear(x[:, :1], weights[0], biases[0]), self.heads)
        k, v = split_projections(F.linear(x, weights[1], biases[1]), self.heads, 2)
        return q, k, v

    def flops(self, n: int) -> int:
        """Return the operations for one sample of ``n`` tokens."""
        bias = self.qkv.bias is not None
        scores = 4 * n * self.dim + self.heads * n + flops.softmax(self.heads, n)
        ends = 2 * flops.linear(1, self.dim, self.dim, bias)
        return ends + flops.linear(n, self.dim, 2 * self.dim, bias) + scores
