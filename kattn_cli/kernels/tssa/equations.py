"""Token statistics self-attention, the operator between its two projections.

Source: ToST, "Token Statistics Transformer", eq. 10–11, Appendix B and C.1, Algorithms 1 and 2.
B: batch, H: heads, N: tokens, d: head width; w is the projection ``U x``, ``(B, H, N, d)``.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact, exactly, full_precision

SUM_EPSILON = 1e-8
NORM_EPSILON = 1e-12


@exactly
def tssa_naive(w: Tensor, eta: Tensor, normalize: bool = True, mask: Tensor | None = None) -> Tensor:
    """Return the equations one after the other. ``eta``: ``(H,)``; ``mask``: ``(B, N)``."""
    w = without_padding(w, mask)
    w_hat = F.normalize(w, dim=-2, eps=NORM_EPSILON) if normalize else w
    membership = (eta[:, None] * w_hat.square().sum(-1)).softmax(1)  # Π (B, H, N)
    counted = membership if mask is None else membership * mask[:, None]
    share = counted / (counted.sum(-1, keepdim=True) + SUM_EPSILON)
    second_moment = (share[..., None] * w.square()).sum(-2, keepdim=True)  # m (B, H, 1, d)
    return -(w * membership[..., None] * (1 / (1 + second_moment)))  # eq. 11


@full_precision
def tssa_plain(w: Tensor, eta: Tensor, normalize: bool = True, mask: Tensor | None = None) -> Tensor:
    """Return TSSA, ``(B, H, N, d)``, with both statistics as matrix products over one squared copy of ``w``.

    Statistics are kept in float32 or better, so that a sum over many tokens survives bfloat16.
    """
    w_exact = without_padding(exact(w), mask)
    membership, shrinkage = membership_and_shrinkage(w_exact, eta, normalize, mask)
    return -(w_exact * membership * shrinkage).to(w.dtype)


@full_precision
def membership_and_shrinkage(
    w: Tensor, eta: Tensor, normalize: bool = True, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return Π ``(B, H, N, 1)`` and the diagonal of D ``(B, H, 1, d)``, for ``w`` that is 0 at the padding.

    In float32 or better, as are the sums over tokens that they are made of.
    """
    squared = exact(w).square()
    if normalize:
        # ‖w‖² is clamped where the naive version clamps ‖w‖, so that a column of zeros stays zeros in both.
        norms = squared.sum(-2).clamp(min=NORM_EPSILON**2)  # ‖w‖² of each feature over tokens (B, H, d)
        # Not their reciprocal, whose gradient holds 1 / ‖w‖⁴: float32 has no such number for a norm of 1e−10.
        energy = squared @ norms.rsqrt().square()[..., None]  # Σ_d ŵ², without ŵ itself
    else:
        energy = squared.sum(-1, keepdim=True)
    membership = (eta[:, None, None] * energy).softmax(1)  # Π (B, H, N, 1)
    weighted = (membership.mT @ squared)[..., 0, :]
    second_moment = weighted / (without_padding(membership, mask).sum(-2) + SUM_EPSILON)  # m (B, H, d)
    return membership, (1 + second_moment).reciprocal()[..., None, :]  # D
