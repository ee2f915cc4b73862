"""What each layer of ToST compresses: the coding rate of token groups, and the variational bound on it.

Source: ToST, "Token Statistics Transformer", eq. 2–4 and Theorem 1, with ``f(x) = log(1 + x)``.
H: groups (heads), N: tokens, d: width. A membership Π is ``(…, H, N)``, ``n_k`` the sum of its row k.
"""

from __future__ import annotations

import torch
from torch import Tensor


def coding_rate(z: Tensor, membership: Tensor) -> Tensor:
    """``½ Σ_k (n_k/n) Σ_i f(λ_i((1/n_k) Z Diag(π_k) Zᵀ))`` (eq. 2): ``z`` ``(…, N, d)`` to ``(…,)``."""
    sizes = membership.sum(-1)
    weighted = z.mT[..., None, :, :] * (membership / sizes[..., None])[..., None, :]
    spectra = torch.linalg.eigvalsh(weighted @ z[..., None, :, :])
    return _over_groups(spectra.clamp(min=0), sizes, z.shape[-2])


def variational_coding_rate(w: Tensor, membership: Tensor) -> Tensor:
    """``½ Σ_k (n_k/n) Σ_i f((1/n_k) (U_kᵀ Z Diag(π_k) Zᵀ U_k)_ii)`` (eq. 4).

    ``w``: the tokens in each group's basis, ``U_kᵀ Z``, ``(…, H, N, d)``; returns ``(…,)``. At least
    :func:`coding_rate` for orthogonal ``U_k``, and equal where they diagonalise (Theorem 1).
    """
    sizes = membership.sum(-1)
    moments = (membership[..., None] * w.square()).sum(-2) / sizes[..., None]
    return _over_groups(moments, sizes, w.shape[-2])


def _over_groups(values: Tensor, sizes: Tensor, n: int) -> Tensor:
    return (sizes / n * values.log1p().sum(-1)).sum(-1) / 2
