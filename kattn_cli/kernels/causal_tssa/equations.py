"""Causal TSSA: every statistic of the tokens is that of the tokens so far.

Source: ToST, "Token Statistics Transformer", eq. 34, Appendix B and C.1, Algorithm 2.
B: batch, H: heads, N: tokens, d: head width; w is the projection ``U x``, ``(B, H, N, d)``.

It adds a learned bias for each position to what the membership Π is made of. The paper's eq. 34
adds it once, to the sum over d; its Algorithm 2 and the authors' program add it inside that sum, d times.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact, exactly, full_precision
from kattn_cli.kernels.tssa.equations import NORM_EPSILON, SUM_EPSILON

Convention = Literal["paper", "reference"]
CHUNK = 64
"""Tokens between two states of the running sums that a kernel keeps for its backward pass."""


class TokenStatistics(NamedTuple):
    """All that causal TSSA remembers of the tokens so far: its size does not depend on their number."""

    energy: Tensor
    """Σ w², ``(B, H, 1, d)``."""
    mass: Tensor
    """Σ Π, ``(B, H, 1, 1)``."""
    moment: Tensor
    """Σ Π w², ``(B, H, 1, d)``."""


def bias_repeats(convention: Convention, width: int) -> int:
    """Return how often the bias of a position is added."""
    return 1 if convention == "paper" else width


@exactly
def causal_tssa_naive(
    w: Tensor,
    eta: Tensor,
    bias: Tensor,
    normalize: bool = True,
    convention: Convention = "paper",
    mask: Tensor | None = None,
) -> Tensor:
    """Return causal TSSA, ``(B, H, N, d)``, one token after the other, from the statistics of the tokens up to it.

    ``eta``: ``(H,)``; ``bias``: of each token's position, ``(B or 1, H, N, 1)``.
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
            shift = bias[b % len(bias), :, t, 0]
            once = w_hat_squared.sum(-1) + shift  # eq. 34
            inside = (w_hat_squared + shift[:, None]).sum(-1)  # Algorithm 2
            logits = once if convention == "paper" else inside
            memberships.append((eta * logits).softmax(0))  # Π_t (H,)
            mass = torch.stack(memberships, -1)  # (H, t)
            moment = (mass[..., None] * w[b, :, seen].square()).sum(1) / (mass.sum(-1, keepdim=True) + SUM_EPSILON)
            out[b, :, t] = -w[b, :, t] * memberships[-1][:, None] / (1 + moment)
    return out


@full_precision
def causal_tssa_plain(
    w: Tensor,
    eta: Tensor,
    bias: Tensor,
    normalize: bool = True,
    convention: Convention = "paper",
    mask: Tensor | None = None,
    past: TokenStatistics | None = None,
) -> tuple[Tensor, TokenStatistics]:
    """Return causal TSSA, ``(B, H, N, d)``, for all tokens after ``past``, and the statistics to continue from.

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
    """Return ``Π · D``, ``(B, H, N, d)``, for ``w`` that is 0 at the padding, and the statistics to continue from.

    In float32 or better, as are the running sums that they are made of.
    """
    squared = exact(w).square()
    energy = _cumulative(squared, None if past is None else past.energy)
    # Sums only grow, so the clamp acts on a feature that was 0 so far alone, and keeps 0 / 0 away.
    shares = squared / energy.clamp(min=NORM_EPSILON) if normalize else squared
    repeats = bias_repeats(convention, w.shape[-1])
    # eq. 34 adds the bias once to the sum over d, Algorithm 2 to each of its d terms.
    membership = (eta[:, None, None] * (shares.sum(-1, keepdim=True) + repeats * bias)).softmax(1)  # Π (B, H, N, 1)
    mass = _cumulative(without_padding(membership, mask), None if past is None else past.mass)
    moment = _cumulative(membership * squared, None if past is None else past.moment)
    # D = 1 / (1 + m): the 1e−8 is the paper's, and padding before the first token leaves no mass but that.
    gains = membership / (1 + moment / (mass + SUM_EPSILON))
    # Clones: a view of the last token would keep the sums of all tokens alive in the state.
    return gains, TokenStatistics(*(sums[..., -1:, :].clone() for sums in (energy, mass, moment)))


def _cumulative(terms: Tensor, before: Tensor | None) -> Tensor:
    sums = terms.cumsum(-2)
    return sums if before is None else sums + before
