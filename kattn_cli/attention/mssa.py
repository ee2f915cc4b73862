"""MSSA, multi-head subspace self-attention: one projection serves as query, key and value.

Source: "White-Box Transformers via Sparse Rate Reduction" (CRATE; Yu et al. 2023), eq. 11–12, with an output
projection as in their program. Its feed-forward is ISTA: ``model: {name: vit, feed_forward: ista}``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_heads
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.kernels.softmax import softmax_attention, softmax_matrix


class SubspaceAttention(AttentionMechanism):
    """``A(w, w) w`` for ``w = U x``, then the output projection. ``(B, N, C)`` to the same."""

    supports_causal = True

    def __init__(self, dim: int, heads: int, *, seq_len: int, causal: bool = False, qkv_bias: bool = False) -> None:
        super().__init__(dim, heads, causal)
        self.u = nn.Linear(dim, dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        w = split_heads(self.u(x), self.heads)
        # One projection is query, key and value.
        return self.proj(join_heads(softmax_attention(w, w, w, causal=self.causal, mask=mask)))

    def decode(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the outputs for the next tokens ``(B, n, C)``, and w so far, to pass in with those that follow."""
        self.require_causal()
        w = split_heads(self.u(x), self.heads)
        state = w if state is None else torch.cat((state, w), -2)
        return self.proj(join_heads(softmax_attention(w, state, state, causal=True))), state

    def kernel_inputs(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return w three times, ``(B, H, N, d)``: queries, keys and values."""
        w = split_heads(self.u(x), self.heads)
        return w, w, w

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``A(w, w)``, ``(B, H, N, N)``."""
        w = split_heads(self.u(x), self.heads)
        return softmax_matrix(w, w, self.causal, mask)

    def flops(self, n: int) -> int:
        """Return the operations for one sample of ``n`` tokens."""
        projection = flops.linear(n, self.dim, self.dim, self.u.bias is not None)
        return projection + flops.softmax_attention(n, self.dim, self.heads) + flops.linear(n, self.dim, self.dim)
