"""YOSO-E, attention by the expected collisions of hashed queries and keys, normalised: N-YOSO.

Source: Zeng et al. 2021, "You Only Sample (Almost) Once: Linear Cost Self-Attention Via Bernoulli Sampling",
the expectation of the Bernoulli variables and, for the gradient, its lower bound.
B: batch, H: heads, N: tokens, d: head width; τ: bits of a hash.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kattn_cli.kernels.choice import version
from kattn_cli.kernels.entry import check_mask
from kattn_cli.kernels.precision import exact, full_precision

Gradient = Literal["exact", "lower-bound"]
BLOCK = 256
"""Queries whose probabilities are held at once, where there are more than twice as many."""


def collision_probability(cosines: Tensor, tau: int) -> Tensor:
    """Return ``(1 − arccos(x) / π)^τ``: how likely τ random hyperplanes all leave two vectors on the same side.

    At x = ±1, where arccos has no derivative, the gradient is 0.
    """
    limit = 1 - torch.finfo(cosines.dtype).eps
    return (1 - torch.acos(cosines.clamp(-limit, limit)) / math.pi) ** tau


class LowerBoundedCollision(torch.autograd.Function):
    """The same probability p with the derivative ``τ p / 2``.

    It is finite everywhere and nowhere above the true ``τ (1 − θ/π)^(τ−1) / (π sin θ)``, for ``(π − θ) sin θ ≤ 2``.
    """

    @staticmethod
    def forward(ctx: Any, cosines: Tensor, tau: int) -> Tensor:
        probability = collision_probability(cosines, tau)
        ctx.save_for_backward(probability)
        ctx.tau = tau
        return probability

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (probability,) = ctx.saved_tensors
        return grad * probability * (ctx.tau / 2), None


@full_precision
def yoso_matrix(q: Tensor, k: Tensor, tau: int, gradient: Gradient = "exact", mask: Tensor | None = None) -> Tensor:
    """Return expected collisions, ``(B, H, N, N)`` in float32 or better, of ``(B, H, N, d)`` twice; 0 at padding."""
    return _probabilities(_unit(q), _unit(k), tau, gradient, mask)


@full_precision
def yoso(q: Tensor, k: Tensor, v: Tensor, tau: int, gradient: Gradient = "exact", mask: Tensor | None = None) -> Tensor:
    """Return expected collisions times values, ``(B, H, N, d)``, each token's output scaled to unit ℓ2 norm.

    Of many queries only a block's probabilities are held at once, and computed again in the backward pass, so that
    memory is linear in N.
    """
    q_hat, k_hat, values = _unit(q), _unit(k), exact(v)
    if version() == "slow" or q.shape[-2] <= 2 * BLOCK:
        sums = _probabilities(q_hat, k_hat, tau, gradient, mask) @ values
    else:
        blocks = [
            # Nothing is drawn inside, so the generator's state need not be kept.
            checkpoint(_sums, some, k_hat, values, tau, gradient, mask, use_reentrant=False, preserve_rng_state=False)
            for some in q_hat.split(BLOCK, -2)
        ]
        sums = torch.cat(blocks, -2)
    return F.normalize(sums, dim=-1).to(v.dtype)


def _unit(z: Tensor) -> Tensor:
    return F.normalize(exact(z), dim=-1)


def _sums(q: Tensor, k: Tensor, v: Tensor, tau: int, gradient: Gradient, mask: Tensor | None) -> Tensor:
    return _probabilities(q, k, tau, gradient, mask) @ v


def _probabilities(q: Tensor, k: Tensor, tau: int, gradient: Gradient, mask: Tensor | None) -> Tensor:
    """Return ``(B, H, n, N)``, 0 at padded keys, for unit vectors ``(B, H, n, d)`` and ``(B, H, N, d)``."""
    check_mask("YOSO", mask, k)
    cosines = q @ k.mT
    weights = collision_probability(cosines, tau) if gradient == "exact" else LowerBoundedCollision.apply(cosines, tau)
    return weights if mask is None else weights.masked_fill(~mask[:, None, None, :], 0)


def yoso_naive(
    q: Tensor, k: Tensor, v: Tensor, tau: int, gradient: Gradient = "exact", mask: Tensor | None = None
) -> Tensor:
    """Return :func:`yoso` token by token.

    The lower bound is the gradient of ``p₀ (1 + τ (x − x₀) / 2)``, with p₀ and x₀ held constant.
    """
    outputs = []
    for i in range(q.shape[-2]):
        out = torch.zeros_like(v[..., 0, :])
        for j in range(k.shape[-2]):
            product = (q[..., i, :] * k[..., j, :]).sum(-1, keepdim=True)
            cosine = product / (q[..., i, :].norm(dim=-1, keepdim=True) * k[..., j, :].norm(dim=-1, keepdim=True))
            probability = (1 - cosine.acos() / math.pi) ** tau
            if gradient == "lower-bound":
                probability = probability.detach() * (1 + tau / 2 * (cosine - cosine.detach()))
            out = out + (probability if mask is None else probability * mask[:, None, j, None]) * v[..., j, :]
        outputs.append(out / out.norm(dim=-1, keepdim=True))
    return torch.stack(outputs, -2)
