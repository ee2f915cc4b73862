"""Do the scores of Primal-Attention solve the kernel SVD that they are derived from?

Source: Primal-Attention, "Self-attention through Asymmetric Kernel SVD in Primal Representation", eq. 6–8,
Theorem 3.2, Remark 3.3, Lemma 4.2, Appendix A.1. B: batch, H: heads, N: tokens, s: directions.

With ``φ' = f(X)φ`` (data-independent: ``φ``), the Lagrangian ``J − Σᵢ h_eᵢᵀ(eᵢ − W_eᵀφ'_q(xᵢ)) − Σⱼ h_rⱼᵀ(rⱼ −
W_rᵀφ'_k(xⱼ))`` is stationary where ``W_r = Σᵢ φ'_q(xᵢ) h_eᵢᵀ``, ``W_e = Σⱼ φ'_k(xⱼ) h_rⱼᵀ``, ``h_eᵢ = Λ eᵢ`` and
``h_rⱼ = Λ rⱼ``. Putting W_e into ``eᵢ = W_eᵀφ'_q(xᵢ)`` gives ``eᵢ = Σⱼ h_rⱼ κ(xᵢ, xⱼ)``, so that ``e = K r Λ`` and,
likewise, ``r = Kᵀ e Λ``, for the induced kernel K. There both energies in J equal Tr(W_eᵀW_r), and J is 0. The
converse does not hold: J is one number, and many weights that solve nothing make it 0.

The weights are shared by all inputs and the stationary ones are not, so no weights solve this for every input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.audit.view import View, mean_and_deviation, of_head
from kattn_cli.kernels.primal.equations import CONVENTIONS, Convention
from kattn_cli.runs.csv_rows import Row


class Duality(NamedTuple):
    """Per sample and head, ``(B, H)`` each."""

    residual_e: Tensor
    """``‖K r Λ − e‖ / ‖e‖``: 0 where the dual gives the primal's scores."""
    residual_r: Tensor
    """``‖Kᵀ e Λ − r‖ / ‖r‖``."""
    overlap_e: Tensor
    """:func:`subspace_overlap` of e with the leading s left singular vectors of K."""
    overlap_r: Tensor
    """That of r with the right ones."""


def duality(kernel: Tensor, e: Tensor, r: Tensor, regulariser: Tensor) -> Duality:
    """Measure how far scores ``(B, H, N, s)`` are from the kernel SVD of ``kernel`` ``(B, H, N, N)``.

    ``regulariser``: the diagonal of eq. 6's Λ, ``(H, s)``; see :func:`dual_regulariser`. Ranks follow from the
    tensors' precision, so give them as they were computed. Not a number where all scores are 0.
    """
    left, right = _singular_bases(kernel)
    s = e.shape[-1]
    return Duality(
        _relative(kernel @ (r * regulariser[:, None]) - e, e),
        _relative(kernel.mT @ (e * regulariser[:, None]) - r, r),
        subspace_overlap(e, left[..., :s]),
        subspace_overlap(r, right[..., :s]),
    )


def dual_regulariser(regulariser: Tensor, convention: Convention, tokens: int) -> Tensor:
    """Return eq. 6's Λ: the learned one, or ``Λ²/N`` where J is ``½ mean‖Λe‖² + ½ mean‖Λr‖² − Tr(W_eᵀW_r)``."""
    return regulariser.square() / tokens if convention == "reference" else regulariser


def subspace_overlap(scores: Tensor, singular_vectors: Tensor) -> Tensor:
    """Return the mean squared cosine of the principal angles between two column spans, ``(…, N, s)`` and ``(…, N, t)``.

    ``singular_vectors``: orthonormal columns, or columns of 0 beyond the rank. 1: the smaller span lies in the
    larger. See :func:`chance_overlap` for what a span that was not learned reaches.
    """
    basis = _singular_bases(scores)[0]
    dimensions = torch.minimum(_squares(basis), _squares(singular_vectors))  # orthonormal columns: their number
    return _squares(basis.mT @ singular_vectors) / dimensions


def chance_overlap(kernel: Tensor, directions: int) -> Tensor:
    """Return ``s / rank(K)``, at most 1: the mean overlap of a random span of s with the leading one, ``(B, H)``.

    Not s/N: e is made of the feature maps of the queries, r of those of the keys, and these span the columns and
    the rows of K, whose rank is at most the head width. Weights as initialised reach more than this where the
    features are unevenly spread.
    """
    rank = _squares(_singular_bases(kernel)[0]).round()
    return (directions / rank).clamp(max=1)


def _singular_bases(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Return left and right singular vectors in columns, those beyond the numerical rank replaced by 0."""
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)
    rounding = max(matrices.shape[-2:]) * torch.finfo(matrices.dtype).eps * values[..., :1]
    kept = (values > rounding)[..., None, :]
    return left * kept, right.mT * kept


def _squares(z: Tensor) -> Tensor:
    return z.square().sum((-2, -1))


def _relative(difference: Tensor, scores: Tensor) -> Tensor:
    return difference.norm(dim=(-2, -1)) / scores.norm(dim=(-2, -1))


def dualities(view: View) -> Iterator[Row]:
    """Measure J of each layer (in every row of its heads), and per head how far the dual equations are from holding."""
    for layer, mechanism, x in view.layers_with("dual_view"):
        kernel, e, r = mechanism.dual_view(x)
        weights = dual_regulariser(mechanism.regulariser, mechanism.convention, x.shape[1])
        found = duality(kernel, e, r, weights)
        chance = chance_overlap(kernel, e.shape[-1])
        objective, deviation = mean_and_deviation(mechanism.objective())
        in_each = {f"objective_{name}": mechanism.objective(name).mean().item() for name in CONVENTIONS}
        for head in range(kernel.shape[1]):
            yield {
                "epoch": view.epoch,
                "layer": layer,
                "head": head,
                "objective": objective.item(),
                "objective_std": deviation.item(),
                **in_each,
                **{name: of_head(getattr(found, name), head)[0] for name in found._fields},
                "overlap_chance": of_head(chance, head)[0],
                "convention": mechanism.convention,
                "inputs": len(x),
            }
