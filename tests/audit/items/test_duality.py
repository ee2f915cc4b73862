"""The dual equations at the kernel SVD's own solution, built from explicit feature maps, and away from it."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from kattn_cli.attention.heads import split_heads, split_projections
from kattn_cli.attention.primal import PrimalAttention
from kattn_cli.audit.items.duality.measure import Duality, chance_overlap, dual_regulariser, duality, subspace_overlap
from kattn_cli.kernels.primal.equations import Convention, cosine_features, ksvd_objective, primal_scores, sampled_rows

N, D, S = 12, 5, 3


class Solution(NamedTuple):
    kernel: Tensor
    e: Tensor
    r: Tensor
    w_e: Tensor
    w_r: Tensor
    regulariser: Tensor
    h_r: Tensor


def _solution(rows: int | None, convention: Convention = "paper") -> Solution:
    """Weights from the SVD of the kernel of random features: ``W_e = Σⱼ φ'_k(xⱼ) h_rⱼᵀ``, ``Λ = Σ⁻¹``."""
    torch.manual_seed(0)
    phi_q, phi_k = torch.randn(2, 1, 2, N, D, dtype=torch.float64)
    f = None if rows is None else torch.randn(1, 2, rows, D, dtype=torch.float64)
    features_q, features_k = (phi_q, phi_k) if f is None else (phi_q @ f.mT, phi_k @ f.mT)
    kernel = features_q @ features_k.mT
    left, values, right = torch.linalg.svd(kernel)
    h_e, h_r = left[..., :S], right.mT[..., :S]
    w_e, w_r = (features_k.mT @ h_r)[0], (features_q.mT @ h_e)[0]
    regulariser = 1 / values[0, :, :S]
    if convention == "reference":
        regulariser = (N * regulariser).sqrt()
    e, r = primal_scores(phi_q, f, w_e), primal_scores(phi_k, f, w_r)
    return Solution(kernel, e, r, w_e, w_r, regulariser, h_r)


@pytest.mark.parametrize("rows", [None, 7])
@pytest.mark.parametrize("convention", ["paper", "reference"])
def test_solution_is_stationary_and_its_objective_is_zero(rows: int | None, convention: Convention) -> None:
    """Theorem 3.2 and Lemma 4.2, data-independent and data-dependent."""
    known = _solution(rows, convention)
    found = duality(known.kernel, known.e, known.r, dual_regulariser(known.regulariser, convention, N))
    assert found.residual_e.shape == (1, 2)
    _assert_solved(found)
    objective = ksvd_objective(known.e, known.r, known.w_e, known.w_r, known.regulariser, convention)
    assert objective.abs().max() < 1e-12 * (known.w_e * known.w_r).sum()


def test_scores_of_the_primal_are_those_of_the_dual() -> None:
    """Remark 3.3, token by token: ``e(xᵢ) = Σⱼ h_rⱼ κ(xᵢ, xⱼ)``."""
    known = _solution(7)
    for i in range(N):
        dual = sum(known.h_r[0, 0, j] * known.kernel[0, 0, i, j] for j in range(N))
        torch.testing.assert_close(known.e[0, 0, i], dual)


@pytest.mark.parametrize("projection", ["data-dependent", "data-independent"])
def test_mechanism_with_the_weights_of_the_solution(projection: str) -> None:
    """Its kernel, scores and objective fit each other: those weights solve it for their own input alone."""
    torch.manual_seed(0)
    module = PrimalAttention(16, 2, seq_len=N, s=S, projection=projection, convention="paper").double()  # type: ignore[arg-type]
    x = torch.randn(1, N, 16, dtype=torch.float64)
    with torch.no_grad():
        phi_q, phi_k, f = _features(module, x)
        left, values, right = torch.linalg.svd(module.attention_matrix(x))
        module.w_e.copy_(((phi_k if f is None else phi_k @ f.mT).mT @ right.mT[..., :S])[0])
        module.w_r.copy_(((phi_q if f is None else phi_q @ f.mT).mT @ left[..., :S])[0])
        module.regulariser.copy_(1 / values[0, :, :S])
        _assert_solved(_of_module(module, x))
        module(x)
        assert module.objective().abs().max() < 1e-12 * (module.w_e * module.w_r).sum()
        other = _of_module(module, torch.randn_like(x))
        assert min(other.residual_e.min(), other.residual_r.min()) > 0.1
        assert max(other.overlap_e.max(), other.overlap_r.max()) < 0.99


def test_objective_of_zero_solves_nothing_by_itself() -> None:
    """Λ can be scaled so that random weights have J = 0; the dual equations see the difference."""
    known = _solution(None)
    torch.manual_seed(1)
    w_e, w_r = torch.randn(2, 2, D, S, dtype=torch.float64)
    w_r = w_r * (w_e * w_r).sum().sign()  # a positive trace
    torch.manual_seed(0)
    phi_q, phi_k = torch.randn(2, 1, 2, N, D, dtype=torch.float64)
    e, r = phi_q @ w_e, phi_k @ w_r
    energy = ksvd_objective(e, r, w_e * 0, w_r * 0, known.regulariser, "paper")
    regulariser = known.regulariser * (w_e * w_r).sum() / 2 / energy
    assert ksvd_objective(e, r, w_e, w_r, regulariser, "paper").abs() < 1e-12
    found = duality(known.kernel, e, r, regulariser)
    assert min(found.residual_e.min(), found.residual_r.min()) > 0.3


def test_residuals_by_hand() -> None:
    """K = 2, Λ = ½: for e = 3, r = 1, the dual gives e = 1 and r = 3."""
    kernel, e, r = (torch.tensor([[[[value]]]]) for value in (2.0, 3.0, 1.0))
    found = duality(kernel, e, r, torch.tensor([[0.5]]))
    torch.testing.assert_close(found.residual_e, torch.tensor([[2 / 3]]))
    torch.testing.assert_close(found.residual_r, torch.tensor([[2.0]]))


def test_overlap_by_hand() -> None:
    """Spans that share one of two directions, the other at 60°: (1 + ¼)/2. A repeated column adds none."""
    vectors = torch.eye(4, dtype=torch.float64)[:, :2]
    scores = torch.tensor([[3.0, 0, 0, 0], [0, 1, 3**0.5, 0]], dtype=torch.float64).T
    expected = torch.tensor(0.625, dtype=torch.float64)
    torch.testing.assert_close(subspace_overlap(scores, vectors), expected)
    torch.testing.assert_close(subspace_overlap(torch.cat((scores, 2 * scores), -1), vectors), expected)
    inside = subspace_overlap(scores[:, :1], vectors)
    torch.testing.assert_close(inside, torch.tensor(1.0, dtype=torch.float64))


def test_chance_is_of_the_rank_and_not_of_the_tokens() -> None:
    """Random weights: with isotropic features the overlap is s/d on average; with as many directions as d, it is 1."""
    torch.manual_seed(0)
    features = torch.linalg.qr(torch.randn(200, 2, N, D, dtype=torch.float64)).Q
    kernel = features @ torch.randn(200, 2, D, N, dtype=torch.float64)
    scores = features @ torch.randn(200, 2, D, S, dtype=torch.float64)
    found = duality(kernel, scores, scores, torch.ones(2, S))
    chance = chance_overlap(kernel, S)
    torch.testing.assert_close(chance, torch.full_like(chance, S / D))
    assert abs(found.overlap_e.mean() - S / D) < 0.01
    full = features @ torch.randn(200, 2, D, D + 1, dtype=torch.float64)
    overlap = duality(kernel, full, full, torch.ones(2, D + 1)).overlap_e
    torch.testing.assert_close(overlap, torch.ones_like(overlap))
    assert (chance_overlap(kernel, D + 1) == 1).all()


def _features(module: PrimalAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    q, k = split_projections(module.qk(x), 2, 2)
    f = split_heads(x[:, sampled_rows(N, module.w_e.shape[1], "paper")], 2) if module.data_dependent else None
    return cosine_features(q), cosine_features(k), f


def _of_module(module: PrimalAttention, x: Tensor) -> Duality:
    phi_q, phi_k, f = _features(module, x)
    e, r = primal_scores(phi_q, f, module.w_e), primal_scores(phi_k, f, module.w_r)
    return duality(module.attention_matrix(x), e, r, module.regulariser)


def _assert_solved(found: Duality) -> None:
    assert max(found.residual_e.max(), found.residual_r.max()) < 1e-12
    for overlap in (found.overlap_e, found.overlap_r):
        torch.testing.assert_close(overlap, torch.ones_like(overlap))
