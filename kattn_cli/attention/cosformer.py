"""cosFormer: linear attention with ReLU features and a cosine that prefers near tokens.

Source: Qin et al. 2022, "cosFormer: Rethinking Softmax in Attention", its re-weighting mechanism, with M = ``seq_len``.

Positions count tokens only, so that padding shifts nothing. A query whose ReLU is zero, or meets no key's, has no
weights at all (0/0 in the paper); it returns zeros to the output projection.
"""

from __future__ import annotations

from torch import Tensor

from kattn_cli.attention.linear import FeatureMapAttention, Features
from kattn_cli.attention.mechanism import refuse_longer
from kattn_cli.kernels.cosformer import cosformer_angles, cosformer_features


class CosformerAttention(FeatureMapAttention):
    """Weights ``relu(qᵢ)ᵀ relu(kⱼ) cos(π/2 · (i − j)/M)`` over their sum. ``(B, N, C)`` to the same.

    Beyond M tokens the cosine turns negative, so longer sequences are refused.
    """

    def __init__(self, dim: int, heads: int, *, seq_len: int, causal: bool = False, qkv_bias: bool = True) -> None:
        super().__init__(dim, heads, causal=causal, qkv_bias=qkv_bias, features_per_head=2 * (dim // heads))
        self.seq_len = seq_len

    def features(self, q: Tensor, k: Tensor, mask: Tensor | None, start: int = 0) -> Features:
        """Return the features of queries and keys, weighted by their positions.

        Raises ``ValueError`` if there are more tokens than ``seq_len``."""
        refuse_longer(start + q.shape[-2], self.seq_len)
        angles = cosformer_angles(q, self.seq_len, mask, start)
        return cosformer_features(q, angles), cosformer_features(k, angles), None

    def feature_flops(self, n: int) -> int:
        return 3 * n + 2 * 3 * n * self.dim
