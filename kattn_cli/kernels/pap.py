"""Principal Attention Pursuit: ADMM iterations of Principal Component Pursuit on the keys.

Source: RPC-Attention, "Unveiling the Hidden Structure of Self-Attention via Kernel PCA", Algorithm 1 and
Definition 1. B: batch, H: heads, N: tokens, d: head width, C = H·d.

Three conventions:

- ``paper``: τ = λ/μ, μ = N·d / (4‖k‖₁), and ``k − S − Y/μ`` in step 2, as printed.
- ``reference``: what the authors' program computes: τ = λ·μ, and C in place of d in μ.
- ``textbook``: as ``paper``, with ``k − S + Y/μ`` in step 2: the minimiser over L of the paper's own
  augmented Lagrangian.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from torch import Tensor

from kattn_cli.kernels.softmax import softmax_attention, softmax_attention_naive

Convention = Literal["paper", "reference", "textbook"]


def shrink(z: Tensor, threshold: Tensor) -> Tensor:
    """``sgn(z) · max(|z| − τ, 0)``, elementwise."""
    return z.sign() * (z.abs() - threshold).clamp(min=0)


def penalty(k: Tensor, convention: Convention) -> Tensor:
    """μ per sample and head, ``(B, H, 1, 1)``, for keys ``(B, H, N, d)``."""
    heads, n, d = k.shape[-3:]
    width = heads * d if convention == "reference" else d
    return n * width / (4 * k.abs().sum((-2, -1), keepdim=True))


def threshold(k: Tensor, lambda_: float, convention: Convention) -> Tensor:
    """τ per sample and head, ``(B, H, 1, 1)``; differentiable in ``k``, as the authors' is."""
    mu = penalty(k, convention)
    return lambda_ * mu if convention == "reference" else lambda_ / mu


def pap_naive(
    k: Tensor, v: Tensor, *, iterations: int, lambda_: float, convention: Convention, q: Tensor | None = None
) -> Tensor:
    """Algorithm 1 line by line, with S, L and Y as printed and every attention matrix formed."""
    mu, tau = penalty(k, convention), threshold(k, lambda_, convention)
    sign = 1 if convention == "textbook" else -1
    low_rank, dual = k * 0, k * 0
    for _ in range(iterations):
        sparse = shrink(k - low_rank + dual / mu, tau)  # step 1
        z = k - sparse + sign * dual / mu
        low_rank = softmax_attention_naive(z if q is None else q, z, v)  # step 2
        dual = dual + mu * (k - low_rank - sparse)  # step 3
    return low_rank


def pap_steps(
    k: Tensor,
    v: Tensor,
    *,
    iterations: int,
    lambda_: float,
    convention: Convention,
    q: Tensor | None = None,
    dropout: float = 0.0,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """``(z, S, L)`` of each iteration, with ``z`` the keys that attend in step 2; each ``(B, H, N, d)``.

    Written in ``U = Y/μ``, so that μ matters through τ alone, and with fused attention. ``dropout`` applies
    to the attention weights of the last iteration only.
    """
    tau = threshold(k, lambda_, convention)
    sign = 1 if convention == "textbook" else -1
    residual, u = k, None  # k − L with L₀ = 0, and U₀ = 0
    for step in range(1, iterations + 1):
        sparse = shrink(residual if u is None else residual + u, tau)
        z = k - sparse if u is None else k - sparse + sign * u
        low_rank = softmax_attention(z if q is None else q, z, v, dropout=dropout if step == iterations else 0.0)
        yield z, sparse, low_rank
        residual = k - low_rank
        u = residual - sparse if u is None else u + residual - sparse


def pap(
    k: Tensor,
    v: Tensor,
    *,
    iterations: int,
    lambda_: float,
    convention: Convention,
    q: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """``L`` of the last iteration, ``(B, H, N, d)``, for keys and values ``(B, H, N, d)``.

    With ``q``, step 2 attends from the queries to the cleaned keys (RPC-AsymViT, Appendix E.10).
    """
    steps = pap_steps(k, v, iterations=iterations, lambda_=lambda_, convention=convention, q=q, dropout=dropout)
    (*_, (_, _, low_rank)) = steps
    return low_rank
