"""Singular values of attention matrices (Primal-Attention paper, Figure 1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Spectrum:
    """Of one layer over a set of inputs, mean and standard deviation, each ``(H, N)``.

    ``explained`` is the cumulative explained variance ``Σ_{i≤k} σᵢ² / Σ σᵢ²``: of σ², not σ.
    """

    values: Tensor
    values_std: Tensor
    explained: Tensor
    explained_std: Tensor


def singular_values(matrices: Tensor) -> Tensor:
    """``(B, H, N, N)`` to ``(B, H, N)``, largest first, in float64 on the CPU."""
    return torch.linalg.svdvals(matrices.detach().to("cpu", torch.float64))


def explained_variance(values: Tensor) -> Tensor:
    """Cumulative share of ``σ²`` along the last axis."""
    squares = values.square()
    return squares.cumsum(-1) / squares.sum(-1, keepdim=True)


def spectrum(values: Tensor) -> Spectrum:
    """From the singular values ``(B, H, N)`` of ``B`` inputs."""
    explained = explained_variance(values)
    return Spectrum(values.mean(0), _deviation(values), explained.mean(0), _deviation(explained))


def _deviation(values: Tensor) -> Tensor:
    return values.std(0) if len(values) > 1 else torch.zeros_like(values[0])
