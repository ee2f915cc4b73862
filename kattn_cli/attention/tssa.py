"""TSSA, token statistics self-attention. Linear in N: tokens meet only in two statistics per head.

Source: "Token Statistics Transformer: Linear-Time Attention via Variational Rate Reduction", eq. 10–11,
Appendix C.1 and Algorithm 1; ``normalize: false`` is the ablation of Table 8.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import head_width, join_heads, split_heads
from kattn_cli.kernels.tssa import tssa


class TokenStatisticsAttention(nn.Module):
    """``−(w · Π · D)`` for ``w = U x``, then the output projection. ``(B, N, C)`` to the same."""

    supports_causal = False

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        normalize: bool = True,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__()
        head_width(dim, heads)
        if causal:
            raise ValueError("the causal form of tssa is not here yet")
        self.dim, self.heads, self.normalize = dim, heads, normalize
        self.u = nn.Linear(dim, dim, bias=qkv_bias)
        self.eta = nn.Parameter(torch.ones(heads))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        w = split_heads(self.u(x), self.heads)
        return self.proj(join_heads(tssa(w, self.eta, self.normalize)))

    def flops(self, n: int) -> int:
        """Operations for one sample of ``n`` tokens: 12 an entry of w, and the softmax over heads."""
        return (
            flops.linear(n, self.dim, self.dim, self.u.bias is not None)
            + 12 * n * self.dim
            + flops.softmax(n, self.heads)
            + flops.linear(n, self.dim, self.dim)
        )
