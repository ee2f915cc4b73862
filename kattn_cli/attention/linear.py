"""Linear attention: a feature map's products in place of the exponential, linear in N.

Source: Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention",
eq. 4–12 and 16–20. Other feature maps make other mechanisms of it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from torch import Tensor

from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.mechanism import QKVAttention
from kattn_cli.kernels.linear import (
    CHUNK,
    LinearState,
    elu_features,
    linear_attention,
    linear_attention_decode,
    linear_attention_matrix,
)
from kattn_cli.kernels.precision import exact
from kattn_cli.kernels.primal.equations import cosine_features

Features = tuple[Tensor, Tensor, Tensor | None]
"""``φ(q)`` and ``φ(k)``, ``(B, H, N, m)`` each, and the keys' log weights ``(B, H, N, 1)`` if they have any."""


class FeatureMapAttention(QKVAttention):
    """``φ(q) (φ(k)ᵀ v)``, with ``normalise`` over ``φ(q) Σ φ(k)``, then the output projection."""

    supports_causal = True

    def __init__(
        self, dim: int, heads: int, *, causal: bool, qkv_bias: bool, features_per_head: int, normalise: bool = True
    ) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias)
        self.features_per_head, self.normalise = features_per_head, normalise

    @abstractmethod
    def features(self, q: Tensor, k: Tensor, mask: Tensor | None, start: int = 0) -> Features:
        """Return the features of queries and keys ``(B, H, N, d)`` that ``start`` tokens came before."""

    @abstractmethod
    def feature_flops(self, n: int) -> int:
        """Return the operations of :meth:`features` for one sample of ``n`` tokens."""

    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        phi_q, phi_k, log_weight = self.features(q, k, mask)
        return linear_attention(
            phi_q, phi_k, v, mask=mask, causal=self.causal, normalise=self.normalise, log_weight=log_weight
        )

    def decode(self, x: Tensor, state: LinearState | None = None) -> tuple[Tensor, LinearState]:
        """Return the outputs for the next tokens ``(B, n, C)``, and the state to give back with those that follow."""
        self.require_causal()
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        phi_q, phi_k, log_weight = self.features(q, k, None, 0 if state is None else state.tokens)
        out, state = linear_attention_decode(phi_q, phi_k, v, state, normalise=self.normalise, log_weight=log_weight)
        return self.proj(join_heads(out)), state

    def attention_matrix(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what the values are multiplied by, ``(B, H, N, N)``; never formed in training."""
        q, k, _ = split_projections(self.qkv(x), self.heads, 3)
        phi_q, phi_k, log_weight = self.features(q, k, mask)
        return linear_attention_matrix(
            phi_q, phi_k, mask=mask, causal=self.causal, normalise=self.normalise, log_weight=log_weight
        )

    def operator_flops(self, n: int) -> int:
        """Count features, the sums over keys, their products with the queries, the normaliser and its division.

        With ``causal`` also each chunk's own matrix and the keys' weights in it.
        """
        m, d = self.features_per_head, self.head_dim + self.normalise
        within = n * min(n, CHUNK) * (2 * m + 2 * d + 3) if self.causal else 0
        return self.feature_flops(n) + self.heads * (4 * n * m * d + within) + self.normalise * n * self.dim


class LinearAttention(FeatureMapAttention):
    """Features of queries and keys: ``elu + 1``, or their directions (cosine). ``(B, N, C)`` to the same.

    ``convention: reference`` computes what the Primal authors ran: no normaliser, features over ``N^¼``, not causal;
    with ``feature_map: cosine`` what they call "cos": ``z / ‖z‖`` in place of ``elu(z) + 1``.

    Raises:
        ValueError: if ``reference`` is asked to be causal, or ``cosine`` to have a normaliser.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        seq_len: int,
        causal: bool = False,
        feature_map: Literal["elu", "cosine"] = "elu",
        convention: Literal["paper", "reference"] = "paper",
        qkv_bias: bool = True,
    ) -> None:
        if causal and convention == "reference":
            raise ValueError("convention: reference has no causal form")
        if feature_map == "cosine" and convention == "paper":
            raise ValueError(
                "feature_map: cosine needs convention: reference, since cosines can be negative and add up to 0"
            )
        paper = convention == "paper"
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias, features_per_head=dim // heads, normalise=paper)
        self.feature_map: str = feature_map

    def features(self, q: Tensor, k: Tensor, mask: Tensor | None, start: int = 0) -> Features:
        phi_q, phi_k = self._map(q), self._map(k)
        if self.normalise:
            return phi_q, phi_k, None
        # On q and on k, so that their products are over √N, in place of a normaliser.
        scale = max(1, q.shape[-2]) ** -0.25
        return phi_q * scale, phi_k * scale, None

    def feature_flops(self, n: int) -> int:
        return 2 * n * self.dim * (4 if self.normalise or self.feature_map == "cosine" else 5)

    def _map(self, z: Tensor) -> Tensor:
        return elu_features(z) if self.feature_map == "elu" else cosine_features(exact(z))
