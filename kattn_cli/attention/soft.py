"""SOFT: softmax-free attention with a Gaussian kernel through landmarks (Lu et al. 2021, Algorithms 1 and 2).

Our deviations: landmarks are means of segments of the sequence, which has no grid to pool over; Newton's iteration
begins at about half the authors' initial value; a sample with no more tokens than landmarks gets the kernel itself.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.kernels.soft import soft_attention


class SoftAttention(AttentionMechanism):
    """``Pᵀ A⁺ P v``, kernels of landmarks with tokens and with themselves, then the output projection.

    The queries are the keys: ``2C`` outputs of one projection, keys then values. ``(B, N, C)`` to the same.

    Args:
        landmarks: how many means of segments stand for all tokens.
        iterations: of Newton's method for ``A⁺``. Rounding errors double with each, which float32 bears thirty times.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        landmarks: Annotated[int, Field(ge=1)] = 49,
        iterations: Annotated[int, Field(ge=1, le=30)] = 20,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(dim, heads, causal)
        self.landmarks, self.iterations = landmarks, iterations
        self.kv = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        k, v = split_projections(self.kv(x), self.heads, 2)
        return self.proj(join_heads(self._operate(k, v, mask)))

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``Pᵀ A⁺ P``, ``(B, H, N, N)``; its rows do not sum to 1."""
        k, v = split_projections(self.kv(x), self.heads, 2)
        n = x.shape[-2]
        taps = torch.eye(n, dtype=v.dtype, device=v.device).expand(len(x), self.heads, n, n)
        return self._operate(k, taps, mask)

    def _operate(self, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return soft_attention(k, v, landmarks=self.landmarks, iterations=self.iterations, mask=mask)

    def flops(self, n: int) -> int:
        """Return the operations for one sample of ``n`` tokens."""
        projections = flops.linear(n, self.dim, 2 * self.dim, self.kv.bias is not None)
        return projections + self._operator_flops(n) + flops.linear(n, self.dim, self.dim)

    def _operator_flops(self, n: int) -> int:
        m = self.landmarks
        if n <= m:
            return self._kernel_flops(n, n) + 2 * n * n * self.dim
        means = (n + m) * self.dim
        kernels = self._kernel_flops(m, n) + self._kernel_flops(m, m)
        inverse = self.heads * m * m * (3 + self.iterations * (4 * m + 2))
        return means + kernels + inverse + 4 * n * m * self.dim + 2 * m * m * self.dim

    def _kernel_flops(self, rows: int, columns: int) -> int:
        """Count centred rows and columns, their squared norms, the product, and six operations for each entry."""
        return (3 * (rows + columns) + columns + 2 * rows * columns) * self.dim + 6 * self.heads * rows * columns
