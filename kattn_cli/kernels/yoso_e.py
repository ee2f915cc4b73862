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

from kattn_cli.kernels.precision import exact, full_precision

Gradient = Literal["exact", "lower-bound"]


def collision_probability(cosines: Tensor, tau: int) -> Tensor:
    """``(1 − arccos(x) / π)^τ``: how likely all τ random hyperplanes leave two vectors on the same side.

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
    """Expected collisions: ``(B, H, N, d)`` twice to ``(B, H, N, N)``, in float32 or better, 0 at padded keys."""
    cosines = exact(F.normalize(exact(q), dim=-1) @ F.normalize(exact(k), dim=-1).mT)
    weights = collision_probability(cosines, tau) if gradient == "exact" else LowerBoundedCollision.apply(cosines, tau)
    return weights if mask is None else weights.masked_fill(~mask[:, None, None, :], 0)


@full_precision
def yoso(q: Tensor, k: Tensor, v: Tensor, tau: int, gradient: Gradient = "exact", mask: Tensor | None = None) -> Tensor:
    """Expected collisions times values, each token's output scaled to unit ℓ2 norm. ``(B, H, N, d)`` throughout."""
    weights = yoso_matrix(q, k, tau, gradient, mask)
    return F.normalize(weights @ v.to(weights.dtype), dim=-1).to(v.dtype)


def yoso_naive(
    q: Tensor, k: Tensor, v: Tensor, tau: int, gradient: Gradient = "exact", mask: Tensor | None = None
) -> Tensor:
    """Token by token. The lower bound is the gradient of ``p₀ (1 + τ (x − x₀) / 2)``, with p₀, x₀ held constant."""
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
