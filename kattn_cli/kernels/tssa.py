"""Token statistics self-attention, the operator between its two projections.

Source: ToST, "Token Statistics Transformer", eq. 10–11, Appendix B and C.1, Algorithms 1 and 2.
B: batch, H: heads, N: tokens, d: head width; w is the projection ``U x``, ``(B, H, N, d)``.

The causal form adds a learned bias for each position to what the membership Π is made of. The paper's eq. 34
adds it once, to the sum over d; its Algorithm 2 and the authors' program add it inside that sum, d times.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact, full_precision

Convention = Literal["paper", "reference"]
SUM_EPSILON = 1e-8
NORM_EPSILON = 1e-12


class TokenStatistics(NamedTuple):
    """All that causal TSSA remembers of the tokens so far: its size does not depend on their number."""

    energy: Tensor
    """Σ w², ``(B, H, 1, d)``."""
    mass: Tensor
    """Σ Π, ``(B, H, 1, 1)``."""
    moment: Tensor
    """Σ Π w², ``(B, H, 1, d)``."""


def tssa_naive(w: Tensor, eta: Tensor, normalize: bool = True, mask: Tensor | None = None) -> Tensor:
    """The equations one after the other. ``eta``: ``(H,)``; ``mask``: ``(B, N)``."""
    w = without_padding(w, mask)
    w_hat = F.normalize(w, dim=-2, eps=NORM_EPSILON) if normalize else w
    membership = (eta[:, None] * w_hat.square().sum(-1)).softmax(1)  # Π (B, H, N)
    counted = membership if mask is None else membership * mask[:, None]
    share = counted / (counted.sum(-1, keepdim=True) + SUM_EPSILON)
    second_moment = (share[..., None] * w.square()).sum(-2, keepdim=True)  # m (B, H, 1, d)
    return -(w * membership[..., None] * (1 / (1 + second_moment)))  # eq. 11


@full_precision
def tssa(w: Tensor, eta: Tensor, normalize: bool = True, mask: Tensor | None = None) -> Tensor:
    """The same numbers with both token statistics as matrix products over one squared copy of ``w``.

    Statistics are kept in float32 or better, so that a sum over many tokens survives bfloat16.
    """
    w_exact = without_padding(exact(w), mask)
    membership, shrinkage = membership_and_shrinkage(w_exact, eta, normalize, mask)
    return -(w_exact * membership * shrinkage).to(w.dtype)


def membership_and_shrinkage(
    w: Tensor, eta: Tensor, normalize: bool = True, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Π ``(B, H, N, 1)`` and the diagonal of D ``(B, H, 1, d)``, for ``w`` that is 0 at the padding."""
    squared = w.square()
    if normalize:
        norms = squared.sum(-2).clamp(min=NORM_EPSILON**2)  # ‖w‖² of each feature over tokens (B, H, d)
        energy = squared @ norms.reciprocal()[..., None]
    else:
        energy = squared.sum(-1, keepdim=True)
    membership = (eta[:, None, None] * energy).softmax(1)  # Π (B, H, N, 1)
    weighted = (membership.mT @ squared)[..., 0, :]
    second_moment = weighted / (without_padding(membership, mask).sum(-2) + SUM_EPSILON)  # m (B, H, d)
    return membership, (1 + second_moment).reciprocal()[..., None, :]


def causal_tssa_naive(
    w: Tensor,
    eta: Tensor,
    bias: Tensor,
    normalize: bool = True,
    convention: Convention = "paper",
    mask: Tensor | None = None,
) -> Tensor:
    """Every token by itself, from the statistics of the tokens up to it.

    ``eta``: ``(H,)``; ``bias``: of each position, ``(H, N)``, where a token's position counts tokens only.
    """
    samples, _, tokens, _ = w.shape
    out = torch.zeros_like(w)
    for b in range(samples):
        seen: list[int] = []
        memberships: list[Tensor] = []
        for t in range(tokens):
            if mask is not None and not mask[b, t]:
                continue
            seen.append(t)
            energy = w[b, :, seen].square().sum(1).clamp(min=NORM_EPSILON)  # (H, d)
            w_hat_squared = w[b, :, t].square() / energy if normalize else w[b, :, t].square()
            shift = bias[:, len(seen) - 1]
            once = w_hat_squared.sum(-1) + shift  # eq. 34
            inside = (w_hat_squared + shift[:, None]).sum(-1)  # Algorithm 2
            logits = once if convention == "paper" else inside
            memberships.append((eta * logits).softmax(0))  # Π_t (H,)
            mass = torch.stack(memberships, -1)  # (H, t)
            moment = (mass[..., None] * w[b, :, seen].square()).sum(1) / (mass.sum(-1, keepdim=True) + SUM_EPSILON)
            out[b, :, t] = -w[b, :, t] * memberships[-1][:, None] / (1 + moment)
    return out


@full_precision
def causal_tssa(
    w: Tensor,
    eta: Tensor,
    bias: Tensor,
    normalize: bool = True,
    convention: Convention = "paper",
    mask: Tensor | None = None,
    past: TokenStatistics | None = None,
) -> tuple[Tensor, TokenStatistics]:
    """The same for all tokens at once by cumulative sums, going on from ``past``; and what to go on from next.

    ``bias``: of each token's position, ``(B or 1, H, N, 1)``.
    """
    w_exact = without_padding(exact(w), mask)
    gains, statistics = causal_gains(w_exact, eta, bias, normalize, convention, mask, past)
    return -(w_exact * gains).to(w.dtype), statistics


def causal_gains(
    w: Tensor,
    eta: Tensor,
    bias: Tensor,
    normalize: bool = True,
    convention: Convention = "paper",
    mask: Tensor | None = None,
    past: TokenStatistics | None = None,
) -> tuple[Tensor, TokenStatistics]:
    """``Π · D`` of each token and feature, ``(B, H, N, d)``, for ``w`` that is 0 at the padding."""
    squared = w.square()
    energy = _cumulative(squared, None if past is None else past.energy)
    shares = squared / energy.clamp(min=NORM_EPSILON) if normalize else squared
    repeats = 1 if convention == "paper" else w.shape[-1]
    membership = (eta[:, None, None] * (shares.sum(-1, keepdim=True) + repeats * bias)).softmax(1)  # Π (B, H, N, 1)
    mass = _cumulative(without_padding(membership, mask), None if past is None else past.mass)
    moment = _cumulative(membership * squared, None if past is None else past.moment)
    gains = membership / (1 + moment / (mass + SUM_EPSILON))
    return gains, TokenStatistics(*(sums[..., -1:, :].clone() for sums in (energy, mass, moment)))


def _cumulative(terms: Tensor, before: Tensor | None) -> Tensor:
    sums = terms.cumsum(-2)
    return sums if before is None else sums + before
