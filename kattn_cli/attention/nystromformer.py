"""Nyströmformer: softmax attention approximated through landmarks (Xiong et al. 2021, eq. 13–17, Algorithm 1).

Our deviations: landmarks that do not divide N have segments of nearly equal length; a sample with no more tokens than
landmarks gets softmax attention, which is what the authors' program does at as many of one as of the other.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor

from kattn_cli.attention import flops
from kattn_cli.attention.heads import split_projections, unit_values
from kattn_cli.attention.mechanism import QKVAttention
from kattn_cli.attention.value_convolution import ValueConvolution
from kattn_cli.kernels.nystromformer import Convention, nystrom_attention


class NystromAttention(QKVAttention):
    """``softmax(q k̃ᵀ/√d) softmax(q̃ k̃ᵀ/√d)⁺ softmax(q̃ kᵀ/√d) v``, plus the values convolved along the sequence.

    Args:
        landmarks: how many queries and keys, means of segments, stand for all.
        iterations: of the pseudo-inverse. Each may treble rounding errors, which float32 bears twenty times.
        conv_kernel_size: taps of the convolution, one kernel in each head; 0 for none.
        convention: ``reference``: padding counts in the landmarks, as zeros, and the pseudo-inverse begins with a
            norm over the whole batch.

    Raises:
        ValueError: if ``conv_kernel_size`` is even and not 0.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        landmarks: Annotated[int, Field(ge=1)] = 64,
        iterations: Annotated[int, Field(ge=1, le=20)] = 6,
        conv_kernel_size: Annotated[int, Field(ge=0)] = 0,
        convention: Convention = "paper",
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        self.landmarks, self.iterations, self.convention = landmarks, iterations, convention
        self.conv = ValueConvolution(heads, conv_kernel_size) if conv_kernel_size else None

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        out = nystrom_attention(
            q, k, v, landmarks=self.landmarks, iterations=self.iterations, mask=mask, convention=self.convention
        )
        return out if self.conv is None else out + self.conv(v, mask)

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what multiplies the values, convolution included, ``(B, H, N, N)``."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        return self.operate(q, k, unit_values(q), mask)

    def operator_flops(self, n: int) -> int:
        """Count two attentions of N tokens and m landmarks, the landmarks' kernel, its inverse and the convolution."""
        convolution = 0 if self.conv is None else self.conv.flops(n, self.dim)
        m = self.landmarks
        if n <= m:
            return flops.softmax_attention(n, self.dim, self.heads) + convolution
        means = 2 * (n + m) * self.dim
        attentions = 2 * (4 * n * m * self.dim + self.heads * n * m)
        softmaxes = flops.softmax(self.heads * n, m) + flops.softmax(self.heads * m, n + m)
        kernel = 2 * m * m * self.dim + self.heads * m * m
        inverse = self.heads * m * m * (3 + self.iterations * (8 * m + 4))
        values = 2 * m * m * self.dim
        return means + attentions + softmaxes + kernel + inverse + values + convolution
