"""Singular values of attention matrices, and how many of them matter (Primal-Attention paper, Figure 1).

B: inputs, H: heads, N: tokens, K: values known of the ``count`` there are.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

EXACT_UP_TO = 1024
"""Larger matrices are decomposed by a randomised method."""
RANK = 256
"""The values that it looks for."""
OVERSAMPLING = 16
POWER_ITERATIONS = 2


class Spectra(NamedTuple):
    """The operators of one layer, input by input."""

    values: Tensor
    """``(B, H, K)``, largest first, float64."""
    total: int
    """How many there are: N, or K if all are known."""
    energy: Tensor
    """Σ σ² of all of them, ``(B, H)``."""
    error: Tensor
    """No value is further off, ``(B, H)``; 0 where the decomposition is exact."""
    resolution: float
    """The relative precision that the operators were computed in."""


class Ranks(NamedTuple):
    """How many singular values matter, ``(B, H)`` each. At least so many where the decomposition is not exact."""

    numerical: Tensor
    """Those above ``count · resolution · σ₁``, as in numpy's and LAPACK's rank."""
    effective: Tensor
    """``exp(−Σ p log p)`` for ``p = σ / Σ σ`` (Roy and Vetterli 2007, "The effective rank")."""
    ninety: Tensor
    """The fewest with 90 % of Σ σ²."""


def spectra_of(matrices: Tensor, generator: torch.Generator, exact_up_to: int = EXACT_UP_TO) -> Spectra:
    """Decompose matrices ``(B, H, N, M)``.

    Up to ``exact_up_to`` rows LAPACK's decomposition. Beyond, that of ``QᵀA`` for an orthonormal basis Q of the range
    of ``(A Aᵀ)² A Ω`` with Gaussian Ω (Halko et al. 2011, "Finding structure with randomness"): by Weyl's inequality no
    value is further off than ``‖A − QQᵀA‖ ≤ ‖A − QQᵀA‖_F``, which is ``error``.
    """
    resolution = torch.finfo(matrices.dtype).eps
    matrices = matrices.detach().to("cpu", torch.float64)
    energy = matrices.square().sum((-2, -1))
    count = min(matrices.shape[-2:])
    if count <= exact_up_to:
        return Spectra(torch.linalg.svdvals(matrices), count, energy, torch.zeros_like(energy), resolution)
    rank = min(RANK, count)
    omega = torch.randn(matrices.shape[-1], min(rank + OVERSAMPLING, count), generator=generator, dtype=torch.float64)
    q = torch.linalg.qr(matrices @ omega).Q
    for _ in range(POWER_ITERATIONS):
        q = torch.linalg.qr(matrices @ torch.linalg.qr(matrices.mT @ q).Q).Q
    projected = q.mT @ matrices
    # Not √(‖A‖_F² − ‖QᵀA‖_F²): a difference of squares is lost in their rounding below 1e-8 ‖A‖_F.
    error = torch.linalg.matrix_norm(matrices - q @ projected)
    return Spectra(torch.linalg.svdvals(projected)[..., :rank], count, energy, error, resolution)


def spectra_of_values(values: Tensor) -> Spectra:
    """Return those of an operator that knows its singular values itself, ``(B, H, K)``, largest first."""
    resolution = torch.finfo(values.dtype).eps
    values = values.detach().to("cpu", torch.float64)
    energy = values.square().sum(-1)
    return Spectra(values, values.shape[-1], energy, torch.zeros_like(energy), resolution)


def joined(parts: list[Spectra]) -> Spectra:
    """Return the spectra of several batches of inputs as one."""
    first = parts[0]
    return first._replace(
        values=torch.cat([part.values for part in parts]),
        energy=torch.cat([part.energy for part in parts]),
        error=torch.cat([part.error for part in parts]),
    )


def explained_variance(spectra: Spectra) -> Tensor:
    """Return the cumulative share ``Σ_{i≤k} σᵢ² / Σ σᵢ²``, ``(B, H, K)``: of σ², not σ."""
    return spectra.values.square().cumsum(-1) / spectra.energy[..., None]


def ranks(spectra: Spectra) -> Ranks:
    """Count the singular values that matter in three ways."""
    values = spectra.values
    threshold = spectra.total * spectra.resolution * values[..., :1]
    shares = values / values.sum(-1, keepdim=True)
    short = explained_variance(spectra) < 0.9 * (1 - 1e-12)
    return Ranks(
        numerical=(values > threshold).sum(-1).double(),
        effective=torch.special.entr(shares).sum(-1).exp(),
        ninety=(short.sum(-1) + 1).clamp(max=values.shape[-1]).double(),
    )
