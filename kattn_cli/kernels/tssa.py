"""Token statistics self-attention, the operator between its two projections.

Source: ToST, "Token Statistics Transformer", eq. 10–11, Appendix C.1 and Algorithm 1.
B: batch, H: heads, N: tokens, d: head width; w is the projection ``U x``, ``(B, H, N, d)``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

SUM_EPSILON = 1e-8
NORM_EPSILON = 1e-12


def tssa_naive(w: Tensor, eta: Tensor, normalize: bool = True) -> Tensor:
    """The equations one after the other. ``eta``: ``(H,)``."""
    w_hat = F.normalize(w, dim=-2, eps=NORM_EPSILON) if normalize else w
    membership = (eta[:, None] * w_hat.square().sum(-1)).softmax(1)  # Π (B, H, N)
    share = membership / (membership.sum(-1, keepdim=True) + SUM_EPSILON)
    second_moment = (share[..., None] * w.square()).sum(-2, keepdim=True)  # m (B, H, 1, d)
    return -(w * membership[..., None] * (1 / (1 + second_moment)))  # eq. 11


def tssa(w: Tensor, eta: Tensor, normalize: bool = True) -> Tensor:
    """The same numbers with both token statistics as matrix products over one squared copy of ``w``.

    Statistics are kept in float32 or better, so that a sum over many tokens survives bfloat16.
    """
    exact = w.to(torch.promote_types(w.dtype, torch.float32))
    squared = exact.square()
    if normalize:
        norms = squared.sum(-2).clamp(min=NORM_EPSILON**2)  # ‖w‖² of each feature over tokens (B, H, d)
        energy = squared @ norms.reciprocal()[..., None]
    else:
        energy = squared.sum(-1, keepdim=True)
    membership = (eta[:, None, None] * energy).softmax(1)  # Π (B, H, N, 1)
    weighted = (membership.mT @ squared)[..., 0, :]
    second_moment = weighted / (membership.sum(-2) + SUM_EPSILON)  # m (B, H, d)
    shrinkage = (1 + second_moment).reciprocal()[..., None, :]
    return -(exact * membership * shrinkage).to(w.dtype)
