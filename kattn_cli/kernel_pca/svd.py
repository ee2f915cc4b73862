"""Kernel SVD: the asymmetric eigenproblem, its primal and dual scores, and the asymmetric Nyström method.

Source: Suykens, "SVD revisited", 2016; Tao et al., "Nonlinear SVD with Asymmetric Kernels", arXiv 2306.07040;
Primal-Attention, eq. 2–6, Remark 3.3. N rows x_i, M columns z_j, s components, p: width of the features.

The kernel ``κ(x, z) = ⟨φ(x), ψ(z)⟩`` gives ``K = (κ(x_i, z_j))``, ``(…, N, M)``, which need be neither square nor
symmetric. Stationary points of the primal obey ``K H_r = H_e Σ`` and ``Kᵀ H_e = H_r Σ``: singular vectors of K.
"""

from __future__ import annotations

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

    def residuals(self, kernel: Tensor) -> tuple[Tensor, Tensor]:
        """``‖K H_r − H_e Σ‖`` and ``‖Kᵀ H_e − H_r Σ‖`` over ``‖Σ‖``, ``(…)`` each: 0 where the two equations hold."""
        scale = torch.linalg.vector_norm(self.values, dim=-1)
        e = kernel @ self.right - self.left * self.values[..., None, :]
        r = kernel.mT @ self.left - self.right * self.values[..., None, :]
        return torch.linalg.matrix_norm(e) / scale, torch.linalg.matrix_norm(r) / scale


class Scores(NamedTuple):
    """Projections on the components: ``e`` of rows ``(…, N, s)`` and ``r`` of columns ``(…, M, s)``."""

    e: Tensor
    r: Tensor


def kernel_svd(kernel: Tensor, components: int) -> KernelSvd:
    """The solution of the dual, by LAPACK's SVD of the kernel matrix ``(…, N, M)``."""
    left, values, rows = torch.linalg.svd(kernel, full_matrices=False)
    return KernelSvd(left[..., :components], values[..., :components], rows.mT[..., :components])


def primal_weights(found: KernelSvd, phi: Tensor, psi: Tensor) -> tuple[Tensor, Tensor]:
    """``W_e = Σ_j ψ(z_j) h_{r_j}ᵀ`` and ``W_r = Σ_i φ(x_i) h_{e_i}ᵀ``, ``(…, p, s)`` each.

    ``phi``: ``(…, N, p)``; ``psi``: ``(…, M, p)``.
    """
    return psi.mT @ found.right, phi.mT @ found.left


def primal_scores(weights: tuple[Tensor, Tensor], phi: Tensor, psi: Tensor) -> Scores:
    """``e(x) = W_eᵀ φ(x)`` and ``r(z) = W_rᵀ ψ(z)`` of any points, seen or not, from their features."""
    return Scores(phi @ weights[0], psi @ weights[1])


def dual_scores(found: KernelSvd, rows: Tensor, columns: Tensor) -> Scores:
    """``e(x) = Σ_j h_{r_j} κ(x, z_j)`` and ``r(z) = Σ_i h_{e_i} κ(x_i, z)``, of any points, from their kernels.

    ``rows``: ``κ(x, z_j)`` of the points x with every z_j, ``(…, n, M)``; ``columns``: ``κ(x_i, z)`` of every x_i with
    the points z, ``(…, N, m)``. For the points of the solution, both are K, and ``e = H_e Σ``, ``r = H_r Σ``.
    """
    return Scores(rows @ found.right, columns.mT @ found.left)


def landmarks(length: int, count: int, draws: torch.Generator) -> Tensor:
    """``count`` indices below ``length``, each at most once, in order."""
    return torch.randperm(length, generator=draws)[:count].sort().values


def nystrom_extension(rows: Tensor, columns: Tensor, chosen: Tensor, components: int) -> KernelSvd:
    """The asymmetric Nyström method: the SVD of the landmarks' block, extended to all rows and columns.

    With the block ``K_nm ≈ U Σ Vᵀ``, ``H_e ≈ √(n/N) K_Nm V Σ⁻¹``, ``H_r ≈ √(m/M) K_nMᵀ U Σ⁻¹`` and the values are
    ``√(NM/(nm)) Σ``. With all of the block's components, ``H_e Σ H_rᵀ`` is ``K_Nm K_nm⁺ K_nM``, which
    is K where the block has K's rank; but the factors are estimates, their columns only nearly orthonormal.

    Args:
        rows: the kernel of the n row landmarks with all columns, K_nM ``(…, n, M)``.
        columns: the kernel of all rows with the m column landmarks, K_Nm ``(…, N, m)``.
        chosen: the row landmarks' indices ``(n,)``.
        components: how many to keep; fewer come back where the block has a lower numerical rank.
    """
    landmark = kernel_svd(columns[..., chosen, :], components)
    rank = _rank(landmark.values, max(len(chosen), columns.shape[-1]))
    left, values, right = (one[..., :rank] for one in landmark)
    share_rows, share_columns = len(chosen) / columns.shape[-2], columns.shape[-1] / rows.shape[-1]
    return KernelSvd(
        share_rows**0.5 * (columns @ right) / values[..., None, :],
        values / (share_rows * share_columns) ** 0.5,
        share_columns**0.5 * (rows.mT @ left) / values[..., None, :],
    )


def nystrom(rows: Tensor, columns: Tensor, chosen: Tensor, components: int) -> KernelSvd:
    """The exact SVD of what :func:`nystrom_extension` approximates K by, with orthonormal columns.

    Costs ``O((N + M) (n + m)²)`` and never forms K. Equal to :func:`kernel_svd` where the block has K's rank.
    """
    extended = nystrom_extension(rows, columns, chosen, min(len(chosen), columns.shape[-1]))
    left, upper = torch.linalg.qr(extended.left)
    right, lower = torch.linalg.qr(extended.right)
    core = kernel_svd(upper * extended.values[..., None, :] @ lower.mT, components)
    return KernelSvd(left @ core.left, core.values, right @ core.right)


def _rank(values: Tensor, size: int) -> int:
    """Of the block of the highest rank."""
    threshold = values[..., :1] * size * torch.finfo(values.dtype).eps
    return int((values > threshold).sum(-1).max())
