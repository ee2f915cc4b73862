"""Primal-Attention: projection scores of kernel SVD, and the objective that its training drives to zero.

Source: Primal-Attention, "Self-attention through Asymmetric Kernel SVD in Primal Representation",
eq. 6–11. B: batch, H: heads, N: tokens, d: head width, s: directions, n: sampled rows.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Convention = Literal["paper", "reference"]


def sampled_rows(length: int, count: int, convention: Convention) -> Tensor:
    """Indices of the ``count`` rows of X that make f(X): ``linspace(0, N − 1, n)`` rounded down.

    The authors' integer ``torch.linspace`` can be one below the exact floor that the paper means.
    """
    if convention == "reference":
        return torch.linspace(0, length - 1, count, dtype=torch.long)
    return torch.arange(count) * (length - 1) // max(count - 1, 1)


def primal_scores_naive(phi: Tensor, rows: Tensor | None, weight: Tensor) -> Tensor:
    """Scores of one side, ``(B, H, N, s)``, one sample, head and token at a time (eq. 6).

    ``phi``: the feature map of queries or keys ``(B, H, N, d)``; ``rows``: f(X) ``(B, H, n, d)`` with
    ``weight`` ``(H, n, s)``, or None for data-independent ``weight`` ``(H, d, s)``.
    """
    samples, heads, tokens, _ = phi.shape
    scores = []
    for b in range(samples):
        for h in range(heads):
            projection = weight[h] if rows is None else rows[b, h].T @ weight[h]  # W_{e|X} (d, s)
            scores += [projection.T @ phi[b, h, i] for i in range(tokens)]
    return torch.stack(scores).reshape(samples, heads, tokens, -1)


def primal_scores(phi: Tensor, rows: Tensor | None, weight: Tensor) -> Tensor:
    """The same for all samples, heads and tokens at once."""
    return phi @ (weight if rows is None else rows.mT @ weight)


def cosine_features(z: Tensor) -> Tensor:
    """``z / ‖z‖₂`` over the last axis."""
    return F.normalize(z, dim=-1)


def ksvd_objective(
    e: Tensor, r: Tensor, w_e: Tensor, w_r: Tensor, regulariser: Tensor, convention: Convention
) -> Tensor:
    """J of one layer: ``(B,)``, one value a sample, for ``paper``; a scalar over the batch for ``reference``.

    ``e``, ``r``: ``(B, H, N, s)``; ``w_e``, ``w_r``: ``(H, n, s)``; ``regulariser``: the diagonal of Λ,
    ``(H, s)``.

    - ``paper`` (eq. 11): ``½ Σᵢ eᵢᵀ Λ eᵢ + ½ Σⱼ rⱼᵀ Λ rⱼ − Tr(W_eᵀ W_r)``, mean over heads.
    - ``reference``: ``½ mean‖Λ e‖² + ½ mean‖Λ r‖² − Tr``, means over batch, heads and tokens.
    """
    trace = (w_e * w_r).sum((-2, -1)).mean()
    energy = e.square() + r.square()
    if convention == "reference":
        return (energy * regulariser.square()[:, None]).sum(-1).mean() / 2 - trace
    return (energy * regulariser[:, None]).sum((-2, -1)).mean(1) / 2 - trace
