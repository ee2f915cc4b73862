"""Kernel SVD: the asymmetric eigenproblem, and the asymmetric Nyström method.

Source: Suykens, "SVD revisited", 2016; Tao et al., "Nonlinear SVD with Asymmetric Kernels", arXiv 2306.07040;
Primal-Attention, eq. 2–6, Remark 3.3. N rows x_i, M columns z_j, s components.

The kernel ``κ(x, z) = ⟨φ(x), ψ(z)⟩`` gives ``K = (κ(x_i, z_j))``, ``(…, N, M)``, which need be neither square nor
symmetric. Stationary points of the primal obey ``K H_r = H_e Σ`` and ``Kᵀ H_e = H_r Σ``: singular vectors of K.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class KernelSvd(NamedTuple):
    """The top components, largest first, with any leading shape ``…``."""

    left: Tensor
    """H_e ``(…, N, s)``, orthonormal columns."""
    values: Tensor
    """Diagonal of Σ ``(…, s)``."""
    right: Tensor
    """H_r ``(…, M, s)``, orthonormal columns."""

    @property
    def product(self) -> Tensor:
        """``H_e Σ H_rᵀ``, ``(…, N, M)``: K as these components have it."""
        return self.left * self.values[..., None, :] @ self.right.mT

    def residuals(self, kernel: Tensor) -> tuple[Tensor, Tensor]:
        """``‖K H_r − H_e Σ‖`` and ``‖Kᵀ H_e − H_r Σ‖`` over ``‖Σ‖``, ``(…)`` each: 0 where the two equations hold."""
        scale = torch.linalg.vector_norm(self.values, dim=-1)
        e = kernel @ self.right - self.left * self.values[..., None, :]
        r = kernel.mT @ self.left - self.right * self.values[..., None, :]
        return torch.linalg.matrix_norm(e) / scale, torch.linalg.matrix_norm(r) / scale


def kernel_svd(kernel: Tensor, components: int) -> KernelSvd:
    """Return the solution of the dual, by LAPACK's SVD of the kernel matrix ``(…, N, M)``."""
    left, values, rows = torch.linalg.svd(kernel, full_matrices=False)
    return KernelSvd(left[..., :components], values[..., :components], rows.mT[..., :components])


def landmarks(length: int, count: int, draws: torch.Generator) -> Tensor:
    """Return ``count`` indices below ``length``, each at most once, in order."""
    return torch.randperm(length, generator=draws)[:count].sort().values


def nystrom(rows: Tensor, columns: Tensor, chosen: Tensor, components: int) -> KernelSvd:
    """Return the SVD of the landmarks' block, extended to all rows and columns: the asymmetric Nyström method.

    With the block ``K_nm ≈ U Σ Vᵀ``, ``H_e ≈ √(n/N) K_Nm V Σ⁻¹``, ``H_r ≈ √(m/M) K_nMᵀ U Σ⁻¹`` and the values are
    ``√(NM/(nm)) Σ``. With all of the block's components, ``H_e Σ H_rᵀ`` is ``K_Nm K_nm⁺ K_nM``, which
    is K where the block has K's rank; but the factors are estimates, their columns only nearly orthonormal, and small
    values of the block make it unstable, so keep few. K itself is never formed.

    Args:
        rows: the kernel of the n row landmarks with all columns, K_nM ``(…, n, M)``.
        columns: the kernel of all rows with the m column landmarks, K_Nm ``(…, N, m)``.
        chosen: the row landmarks' indices ``(n,)``.
        components: how many to keep; fewer come back where the block has a lower numerical rank. Of several blocks the
            highest rank decides: those of a lower one have values and columns of 0 beyond their own.
    """
    landmark = kernel_svd(columns[..., chosen, :], components)
    matter = _matter(landmark.values, max(len(chosen), columns.shape[-1]))
    rank = int(matter.sum(-1).max())
    left, values, right = (one[..., :rank] for one in landmark)
    # As in a pseudo-inverse, for each block by itself: what is 0 but for rounding is 0, and so is its inverse.
    divisors = values.where(matter[..., :rank], math.inf)[..., None, :]
    values = values.where(matter[..., :rank], 0)
    share_rows, share_columns = len(chosen) / columns.shape[-2], columns.shape[-1] / rows.shape[-1]
    return KernelSvd(
        share_rows**0.5 * (columns @ right) / divisors,
        values / (share_rows * share_columns) ** 0.5,
        share_columns**0.5 * (rows.mT @ left) / divisors,
    )


def _matter(values: Tensor, size: int) -> Tensor:
    """Return which singular values of each block, ``(…, s)`` and largest first, are more than rounding."""
    return values > values[..., :1] * size * torch.finfo(values.dtype).eps
