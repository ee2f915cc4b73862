"""FAVOR+: random features whose products estimate the exponential of softmax attention.

Source: Choromanski et al. 2021, "Rethinking Attention with Performers", eq. 3–7, Lemma 1 and §2.4.
B: batch, H: heads, N: tokens, m: features, d: head width; the projection ω is ``(m, d)``, shared by the heads.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kattn_cli.kernels.linear import linear_attention_naive
from kattn_cli.kernels.precision import exact, full_precision

RELU_EPSILON = 1e-3
REFERENCE_EPSILON = 1e-4


def orthogonal_gaussian(features: int, width: int) -> Tensor:
    """Return ``(features, width)``: Gaussian rows, orthogonal within a block of ``width`` (§2.4, App. B.2).

    The blocks are uniform over the orthogonal matrices, which Q of a plain QR decomposition is not; the
    estimate would be biased.
    """
    blocks = [nn.init.orthogonal_(torch.empty(width, width)) for _ in range(-(-features // width))]
    return torch.cat(blocks)[:features] * torch.randn(features, width).norm(dim=-1, keepdim=True)


@full_precision
def log_features(x: Tensor, projection: Tensor) -> Tensor:
    """Return log φ of Lemma 1, eq. 7, with positive φ: ``E exp(log φ(x)) · exp(log φ(y)) = exp(xᵀ y / √d)``."""
    x, projection = _scaled(x, projection)
    return x @ projection.mT - x.square().sum(-1, keepdim=True) / 2 - math.log(projection.shape[0]) / 2


def softmax_features(q: Tensor, k: Tensor, projection: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``φ(q)`` up to a factor a query, which normalising cancels, ``φ(k)`` and its ``log_weight``.

    Each is relative to its own largest feature, so that no token has a part in how another is rounded.
    """
    log_q, log_k = log_features(q, projection), log_features(k, projection)
    # Detached: the shift is undone later, so that its gradient would be rounding alone.
    log_weight = log_k.amax(-1, keepdim=True).detach()
    return (log_q - log_q.amax(-1, keepdim=True).detach()).exp(), (log_k - log_weight).exp(), log_weight


@full_precision
def relu_features(x: Tensor, projection: Tensor) -> Tensor:
    """Return ``relu(ω x) + ε``: generalised attention, eq. 5 with f the ReLU, positive."""
    x, projection = _scaled(x, projection)
    return F.relu(x @ projection.mT) + RELU_EPSILON


def reference_features(q: Tensor, k: Tensor, projection: Tensor) -> tuple[Tensor, Tensor]:
    """Return the features of the Primal authors' program: scaled twice, over the largest projection's, plus ε.

    That projection is the query's own, but for keys that of the whole sequence.
    """
    return _reference(q, projection, (-1,)), _reference(k, projection, (-1, -2))


def performer_naive(
    q: Tensor, k: Tensor, v: Tensor, projection: Tensor, mask: Tensor | None = None, causal: bool = False
) -> Tensor:
    """Return eq. 4 with the features of Lemma 1 as printed; forms the N × N matrix."""
    phi_q, phi_k = log_features(q, projection).exp(), log_features(k, projection).exp()
    return linear_attention_naive(phi_q, phi_k, v, mask, causal)


def _scaled(x: Tensor, projection: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``x / d^¼``, so that products are those of softmax attention, and ω of the same type."""
    x = exact(x)
    return x * x.shape[-1] ** -0.25, projection.to(x.dtype)


@full_precision
def _reference(x: Tensor, projection: Tensor, over: tuple[int, ...]) -> Tensor:
    # Scaled here and once more inside, as the authors' program does.
    x, projection = _scaled(x * x.shape[-1] ** -0.25, projection)
    projected = x @ projection.mT
    if not projected.numel():
        return projected
    exponent = projected - x.square().sum(-1, keepdim=True) / 2 - projected.amax(over, keepdim=True).detach()
    return exponent.exp() + REFERENCE_EPSILON
