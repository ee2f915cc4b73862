"""XCA, cross-covariance attention between channels. Linear in N.

Source: "XCiT: Cross-Covariance Image Transformers" (El-Nouby et al. 2021); the ToST paper's baseline, there and
here without XCiT's local patch interaction.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import split_projections
from kattn_cli.attention.mechanism import QKVAttention
from kattn_cli.kernels.xca import cross_covariance, xca


class CrossCovarianceAttention(QKVAttention):
    """``softmax(τ q̂ᵀ k̂)``, d × d for each head, applied to v; then the output projection. ``(B, N, C)`` to the same.

    τ is learned, and starts at 1.
    """

    def __init__(self, dim: int, heads: int, *, seq_len: int, causal: bool = False, qkv_bias: bool = True) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        self.temperature = nn.Parameter(torch.ones(heads))

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return xca(q, k, v, self.temperature, mask)

    def singular_values(self, x: Tensor) -> Tensor:
        """Return those of the d × d matrix A, ``(B, H, d)``, largest first; on tokens it acts as ``I_N ⊗ A``."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        return torch.linalg.svdvals(cross_covariance(q, k, self.temperature))

    def operator_flops(self, n: int) -> int:
        """Count two products with d × d matrices, two norms, and the softmax of d × d scores."""
        d = self.head_dim
        return 4 * n * self.dim * d + 4 * n * self.dim + 2 * self.dim * d + flops.softmax(self.dim, d)
