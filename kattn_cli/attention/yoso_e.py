"""YOSO-E: attention by the expected collisions of queries and keys under random hyperplane hashing.

Source: Zeng et al. 2021, "You Only Sample (Almost) Once". This is the expectation that YOSO's samples converge to,
quadratic in N, with the output of each token scaled to unit norm (N-YOSO).

τ is the bits of a hash. The authors' released configurations have 9 for BERT with 512 tokens (the default here and
of the ``transformers`` library), and on Long-Range Arena 10 for 1,024 tokens, 11 for 2,000 and 12 for 4,000.
``gradient: lower-bound`` is the paper's for its samples: a bound on the derivative, finite where a query meets its
key; the authors' YOSO-E differentiates the expectation.
``conv_kernel_size`` adds to the output a depthwise convolution of the values along tokens, one kernel a head.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from kattn_cli.attention.heads import split_projections, unit_values
from kattn_cli.attention.mechanism import QKVAttention
from kattn_cli.attention.value_convolution import ValueConvolution
from kattn_cli.kernels.yoso_e import Gradient, yoso, yoso_matrix


class YosoAttention(QKVAttention):
    """``normalize((1 − arccos(q̂ k̂ᵀ) / π)^τ v)``, then the output projection. ``(B, N, C)`` to the same.

    Raises:
        ValueError: if ``conv_kernel_size`` is even.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        tau: Annotated[int, Field(ge=1)] = 9,
        gradient: Gradient = "exact",
        conv_kernel_size: Annotated[int, Field(ge=0)] = 0,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        self.tau, self.gradient = tau, gradient
        self.conv = ValueConvolution(heads, conv_kernel_size) if conv_kernel_size else None

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        out = yoso(q, k, v, self.tau, self.gradient, mask)
        return out if self.conv is None else out + self.conv(v, mask)

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what multiplies the values, convolution included, ``(B, H, N, N)``. Rows do not sum to 1."""
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        weights = yoso_matrix(q, k, self.tau, self.gradient, mask)
        norms = (weights @ v.to(weights.dtype)).norm(dim=-1, keepdim=True)
        matrix = (weights / norms.clamp(min=torch.finfo(norms.dtype).tiny)).to(v.dtype)
        return matrix if self.conv is None else matrix + self.conv(unit_values(q), mask)

    def operator_flops(self, n: int) -> int:
        """Count two products; clamping, arccos and power, six an entry; three normalisations; the convolution."""
        normalisations = 3 * (3 * n * self.dim + self.heads * n)
        convolution = 0 if self.conv is None else self.conv.flops(n, self.dim)
        return 4 * n * n * self.dim + 6 * self.heads * n * n + normalisations + convolution
