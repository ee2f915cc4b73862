"""Performer: softmax attention estimated with positive orthogonal random features (FAVOR+), linear in N.

Source: Choromanski et al. 2021, "Rethinking Attention with Performers", eq. 3–7, Lemma 1, §2.4 and Appendix B.1.

Our deviations: the random features are drawn once and kept, not redrawn in training; no ε is added to the softmax
features, since the stabilisers cancel exactly.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor

from kattn_cli.attention.heads import split_projections
from kattn_cli.attention.linear import FeatureMapAttention, Features
from kattn_cli.kernels.linear import linear_attention, linear_attention_matrix
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.performer import orthogonal_gaussian, reference_features, relu_features, softmax_features


class PerformerAttention(FeatureMapAttention):
    """Random features of the softmax kernel, or ReLU ones. ``(B, N, C)`` to the same.

    ``features``, 256 as in the paper, is m: the error falls as 1/√m. ``convention: reference`` computes what the
    Primal authors ran: softmax features with ε, scaled twice, padding counted as keys of zeros, not causal.
    """

    projection: Tensor

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        features: Annotated[int, Field(ge=1)] = 256,
        kernel: Literal["softmax", "relu"] = "softmax",
        convention: Literal["paper", "reference"] = "paper",
        qkv_bias: bool = True,
    ) -> None:
        if causal and convention == "reference":
            raise ValueError("convention: reference has no causal form")
        if kernel != "softmax" and convention == "reference":
            raise ValueError("convention: reference is always kernel: softmax")
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias, features_per_head=features)
        self.kernel: str = kernel
        self.reference = convention == "reference"
        # A buffer: drawn once, not learned, and needed to read a checkpoint.
        self.register_buffer("projection", orthogonal_gaussian(features, self.head_dim))

    def features(self, q: Tensor, k: Tensor, mask: Tensor | None, start: int = 0) -> Features:
        if self.reference:
            # Padded keys are zeros, whose features are not: they stay in the denominator, as in the authors' program.
            return *reference_features(q, without_padding(k, mask), self.projection), None
        if self.kernel == "relu":
            return relu_features(q, self.projection), relu_features(k, self.projection), None
        return softmax_features(q, k, self.projection)

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if self.reference:
            phi_q, phi_k, _ = self.features(q, k, mask)
            return linear_attention(phi_q, phi_k, without_padding(v, mask))
        return super().operate(q, k, v, mask)

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what the values are multiplied by, ``(B, H, N, N)``.

        With ``reference`` and padding, its rows sum to less than one.
        """
        if self.reference:
            q, k, _ = split_projections(self.qkv(x), self.heads, 3)
            phi_q, phi_k, _ = self.features(q, k, mask)
            return without_padding(linear_attention_matrix(phi_q, phi_k).mT, mask).mT
        return super().attention_matrix(x, mask)

    def feature_flops(self, n: int) -> int:
        """Count scaling, norms and projections of queries and keys, and for each feature ReLU and ε, or 5."""
        m = self.features_per_head
        each = 2 if self.kernel == "relu" else 5
        return 2 * n * (3 * self.dim + 2 * self.dim * m + each * self.heads * m)
