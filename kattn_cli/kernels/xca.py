"""Cross-covariance attention: softmax attention between the channels of a head instead of between tokens.

Source: XCiT, "Cross-Covariance Image Transformers" (El-Nouby et al. 2021), "Cross-covariance attention".
B: batch, H: heads, N: tokens, d: head width; q, k, v are ``(B, H, N, d)``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import token_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact, exactly, full_precision

NORM_EPSILON = 1e-12


@exactly
def xca_naive(q: Tensor, k: Tensor, v: Tensor, temperature: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the equation on normalised columns; ``temperature``, ``(H,)``, multiplies the scores."""
    q_hat = F.normalize(without_padding(q, mask), dim=-2, eps=NORM_EPSILON)
    k_hat = F.normalize(without_padding(k, mask), dim=-2, eps=NORM_EPSILON)
    attention = (temperature[:, None, None] * (q_hat.mT @ k_hat)).softmax(-1)  # (B, H, d, d)
    return (attention @ v.mT).mT


@full_precision
def cross_covariance(q: Tensor, k: Tensor, temperature: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return ``softmax(τ q̂ᵀ k̂)``, ``(B, H, d, d)``, with the d × d product divided by the norms.

    Both are sums over all tokens, which leave the range of float16, and so do their gradients: all of it is in float32
    or better.
    """
    q, k = without_padding(exact(q), mask), without_padding(exact(k), mask)
    q_norm, k_norm = (torch.linalg.vector_norm(z, dim=-2, keepdim=True).clamp(min=NORM_EPSILON) for z in (q, k))
    cosines = (q.mT @ k) / (q_norm.mT * k_norm)
    return (temperature[:, None, None] * cosines).softmax(-1)


def xca(q: Tensor, k: Tensor, v: Tensor, temperature: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return XCA, ``(B, H, N, d)``, with the d × d product divided by the norms, instead of the N × d factors."""
    mask = token_mask("XCA", mask, k)
    if version() == "slow":
        return xca_naive(q, k, v, temperature, mask)
    return v @ cross_covariance(q, k, temperature, mask).to(v.dtype).mT
