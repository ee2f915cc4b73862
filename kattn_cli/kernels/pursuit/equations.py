"""Principal Attention Pursuit: ADMM iterations of Principal Component Pursuit on the keys.

Source: RPC-Attention, "Unveiling the Hidden Structure of Self-Attention via Kernel PCA", Algorithm 1 and
Definition 1. B: batch, H: heads, N: tokens, d: head width, C = H·d.

Three conventions:

- ``paper``: τ = λ/μ, μ = N·d / (4‖k‖₁), and ``k − S − Y/μ`` in step 2, as printed.
- ``reference``: what the authors' program computes: τ = λ·μ, and C in place of d in μ.
- ``textbook``: as ``paper``, with ``k − S + Y/μ`` in step 2: the minimiser over L of the paper's own
  augmented Lagrangian.

The causal form, which the paper uses in its language model without stating it, attends causally in step 2, and
each token's μ is that of the tokens so far: the μ of the whole sequence would tell a token about its future.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from kattn_cli.kernels.choice import operator_for, version
from kattn_cli.kernels.entry import check_alike, check_axes, token_mask
from kattn_cli.kernels.masks import token_counts, total, without_padding
from kattn_cli.kernels.precision import exact, exactly
from kattn_cli.kernels.pursuit.operator import pursuit_step
from kattn_cli.kernels.softmax import softmax_attention, softmax_attention_naive

Convention = Literal["paper", "reference", "textbook"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
NORM_EPSILON = 1e-12


@dataclass(frozen=True)
class Pursuit:
    """The settings of a pursuit: n, λ, whose equations, and whether tokens see their future."""

    iterations: int
    lambda_: float
    convention: Convention = "paper"
    causal: bool = False

    @property
    def sign(self) -> int:
        """Return the sign of Y/μ in step 2."""
        return 1 if self.convention == "textbook" else -1


def shrink(z: Tensor, threshold: Tensor) -> Tensor:
    """Return ``sgn(z) · max(|z| − τ, 0)``, elementwise."""
    return z.sign() * (z.abs() - threshold).clamp(min=0)


def penalty(k: Tensor, pursuit: Pursuit, mask: Tensor | None = None) -> Tensor:
    """Return μ of keys ``(B, H, N, d)``: ``(B, H, 1, 1)``; causal, with a μ for each token, ``(B, H, N, 1)``.

    In float32 or better, as τ then is: in float16 ‖k‖₁ overflows, and an infinite τ shrinks nothing, silently.
    """
    heads, d = k.shape[-3], k.shape[-1]
    # The authors' program has the full width C where Definition 1 has the head's d.
    width = heads * d if pursuit.convention == "reference" else d
    norms = without_padding(exact(k), mask).abs().sum(-1, keepdim=True)
    # μ = N·d / (4‖k‖₁); the clamp keeps it finite where all keys are 0.
    return token_counts(k, mask, pursuit.causal) * width / (4 * total(norms, pursuit.causal).clamp(min=NORM_EPSILON))


def threshold(k: Tensor, pursuit: Pursuit, mask: Tensor | None = None) -> Tensor:
    """Return τ in the shape and the type of μ; differentiable in ``k``, as the authors' is."""
    mu = penalty(k, pursuit, mask)
    return pursuit.lambda_ * mu if pursuit.convention == "reference" else pursuit.lambda_ / mu


@exactly
def pap_naive(k: Tensor, v: Tensor, pursuit: Pursuit, *, q: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
    """Return Algorithm 1, line by line, with S, L and Y as printed and every attention matrix formed."""
    mu, tau = penalty(k, pursuit, mask), threshold(k, pursuit, mask)
    low_rank, dual = k * 0, k * 0
    for _ in range(pursuit.iterations):
        sparse = shrink(k - low_rank + dual / mu, tau)  # step 1
        z = k - sparse + pursuit.sign * dual / mu
        low_rank = softmax_attention_naive(z if q is None else q, z, v, pursuit.causal, mask)  # step 2
        dual = dual + mu * (k - low_rank - sparse)  # step 3
    return low_rank


def pap_steps(
    k: Tensor,
    v: Tensor,
    pursuit: Pursuit,
    *,
    q: Tensor | None = None,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield ``(z, S, L)`` of each iteration, ``(B, H, N, d)`` each, with ``z`` the keys that attend in step 2.

    Written in ``U = Y/μ``, so that μ matters through τ alone, and with fused attention. ``dropout`` applies
    to the attention weights of the last iteration only. S and U are in float32 or better, since each iteration
    amplifies what the one before has rounded; z and L, with which attention meets them, in the type of the keys.
    """
    tau = threshold(k, pursuit, mask)
    keys = exact(k)
    residual, u = keys, None  # k − L with L₀ = 0, and U₀ = 0
    for step in range(1, pursuit.iterations + 1):
        sparse = shrink(residual if u is None else residual + u, tau)  # step 1
        z = keys - sparse if u is None else keys - sparse + pursuit.sign * u
        z = z.to(k.dtype)  # the keys of step 2
        last = step == pursuit.iterations
        low_rank = softmax_attention(
            z if q is None else q, z, v, causal=pursuit.causal, mask=mask, dropout=dropout if last else 0.0
        )
        yield z, sparse, low_rank
        residual = keys - low_rank
        u = residual - sparse if u is None else u + residual - sparse  # step 3, over μ


def pap(
    k: Tensor,
    v: Tensor,
    pursuit: Pursuit,
    *,
    q: Tensor | None = None,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return ``L`` of the last iteration, ``(B, H, N, d)``, for keys and values ``(B, H, N, d)``.

    With ``q``, step 2 attends from the queries to the cleaned keys (RPC-AsymViT, Appendix E.10). No matrix of tokens
    by tokens is formed, but by ``slow`` operators, by dropout and by a causal form with a mask.

    Raises:
        ValueError: if ``v`` or ``q`` is not like ``k``, or ``mask`` not ``(B, N)``.
    """
    check_axes("pursuit", "k", k, "B, H, N, d")
    check_alike("pursuit", "v", v, k)
    check_alike("pursuit", "q", q, k)
    mask = token_mask("pursuit", mask, k)
    if version() == "slow" and not dropout:
        return pap_naive(k, v, pursuit, q=q, mask=mask)
    if operator_for(k):
        return pap_fused(k, v, pursuit, q=q, mask=mask, dropout=dropout)
    (*_, (_, _, low_rank)) = pap_steps(k, v, pursuit, q=q, mask=mask, dropout=dropout)
    return low_rank


def pap_fused(
    k: Tensor,
    v: Tensor,
    pursuit: Pursuit,
    *,
    q: Tensor | None = None,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return what :func:`pap` does, by one operator between two attentions that keeps a byte an entry for backward."""
    tau = threshold(k, pursuit, mask)
    low_rank, carried = None, None
    # Signs are for the backward pass alone: without one, nothing but z and U − S is written.
    signs = torch.is_grad_enabled() and (k.requires_grad or v.requires_grad or (q is not None and q.requires_grad))
    for step in range(1, pursuit.iterations + 1):
        last = step == pursuit.iterations
        z, carried, _ = pursuit_step(k, low_rank, carried, tau, pursuit.sign, not last, signs)
        low_rank = softmax_attention(
            z if q is None else q, z, v, causal=pursuit.causal, mask=mask, dropout=dropout if last else 0.0
        ).to(k.dtype)
    assert low_rank is not None
    return low_rank
