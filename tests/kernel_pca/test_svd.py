"""Kernel SVD: its two equations, the objective of Primal-Attention, and the asymmetric Nyström method."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from kattn_cli.kernel_pca.solvers import full
from kattn_cli.kernel_pca.svd import KernelSvd, kernel_svd, landmarks, nystrom
from kattn_cli.kernels.primal.equations import cosine_features, ksvd_objective

N, M, P, S = 23, 17, 6, 4


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def phi() -> Tensor:
    return random(N, P)


@pytest.fixture
def psi() -> Tensor:
    return random(M, P, seed=1)


def test_both_equations_hold_of_each_of_several_matrices() -> None:
    kernel = random(2, 3, N, M)
    found = kernel_svd(kernel, S)
    assert max(one.max() for one in found.residuals(kernel)) < 1e-14
    torch.testing.assert_close(found.left.mT @ found.left, torch.eye(S, dtype=torch.float64).expand(2, 3, S, S))
    torch.testing.assert_close(found.values, torch.linalg.svdvals(kernel)[..., :S])


def test_residuals_of_what_is_no_solution() -> None:
    """By hand: ``K H_r − H_e Σ`` is (3, 0) − (0, 3) and ``Kᵀ H_e − H_r Σ`` is (0, 1) − (3, 0), both over 3."""
    kernel = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    wrong = KernelSvd(torch.tensor([[0.0], [1.0]]), torch.tensor([3.0]), torch.tensor([[1.0], [0.0]]))
    e, r = wrong.residuals(kernel)
    assert (e.item(), r.item()) == pytest.approx((2**0.5, 10**0.5 / 3))


def test_a_symmetric_kernel_gives_kernel_pca(phi: Tensor) -> None:
    gram = phi @ phi.T
    found, expected = kernel_svd(gram, S), full(gram.numpy(), S)
    torch.testing.assert_close(found.values, torch.tensor(expected.values.copy()))
    torch.testing.assert_close(found.left.abs(), torch.tensor(abs(expected.vectors)))


def test_the_objective_is_zero_at_the_solution_only(phi: Tensor) -> None:
    """Lemma 4.2, for two heads of cosine features and Λ = Σ⁻¹; twice that Λ gives Tr Σ, the mean over heads."""
    pair = phi, random(N, P, seed=1)
    left, right = (cosine_features(torch.stack([one, one.square()])[None]) for one in pair)
    found = kernel_svd(left @ right.mT, S)
    w_e, w_r = right.mT @ found.right, left.mT @ found.left  # Σ_j ψ(z_j) h_{r_j}ᵀ and Σ_i φ(x_i) h_{e_i}ᵀ
    scores = left @ w_e, right @ w_r
    regulariser = 1 / found.values[0]
    assert ksvd_objective(*scores, w_e, w_r, regulariser, "paper").abs().item() < 1e-13
    twice = ksvd_objective(*scores, w_e, w_r, 2 * regulariser, "paper")
    torch.testing.assert_close(twice, found.values.sum(-1).mean(-1))


def sampled(kernel: Tensor, n: int, m: int) -> tuple[Tensor, Tensor, Tensor]:
    draws = torch.Generator().manual_seed(0)
    rows, columns = landmarks(kernel.shape[-2], n, draws), landmarks(kernel.shape[-1], m, draws)
    return kernel[..., rows, :], kernel[..., columns], rows


@pytest.mark.parametrize(("n", "m"), [(P, P), (P + 2, P + 5)])
def test_nystrom_is_exact_where_the_landmarks_have_the_rank(phi: Tensor, psi: Tensor, n: int, m: int) -> None:
    kernel = phi @ psi.T
    torch.testing.assert_close(nystrom(*sampled(kernel, n, m), n).product, kernel)


def test_nystrom_with_too_few_landmarks_is_not() -> None:
    kernel = random(N, P) @ random(P, M, seed=1)
    found = nystrom(*sampled(kernel, P - 1, P - 1), P)
    assert found.values.shape == (P - 1,)
    assert (found.product - kernel).norm() > 0.01 * kernel.norm()


def test_nystrom_of_blocks_of_different_rank_is_each_blocks_own() -> None:
    """Ranks 6, 2 and 0 in one batch: ``K_Nm K_nm⁺ K_nM`` with numpy's pseudo-inverse of each, and nothing beyond."""
    kernel = torch.stack([random(N, r, seed=r) @ random(r, M, seed=r + 1) for r in (6, 2, 0)])
    rows, columns, chosen = sampled(kernel, 9, 8)
    found = nystrom(rows, columns, chosen, 8)
    for number, r in enumerate((6, 2, 0)):
        block = columns[number][chosen].numpy()
        expected = columns[number].numpy() @ np.linalg.pinv(block, rcond=1e-12) @ rows[number].numpy()
        np.testing.assert_allclose(found.product[number], expected, atol=1e-10)
        assert (found.values[number] > 0).sum() == r
        for columns_of in (found.left[number], found.right[number]):
            assert columns_of.norm(dim=0).max() < 10
            assert (columns_of[:, r:] == 0).all()


def test_nystrom_with_every_point_a_landmark_is_the_svd() -> None:
    kernel = random(2, N, M)
    found = nystrom(kernel, kernel, torch.arange(N), S)
    torch.testing.assert_close(found.values, kernel_svd(kernel, S).values)
    assert max(one.max() for one in found.residuals(kernel)) < 1e-12


def test_nystrom_estimates_values_and_unit_columns() -> None:
    """Within 2 % for a smooth kernel and evenly spread landmarks: the three factors of shares are right."""
    x, z = torch.linspace(0, 1, 400, dtype=torch.float64), torch.linspace(0.2, 1.4, 300, dtype=torch.float64)
    kernel = torch.exp(-((x[:, None] - z) ** 2))
    rows = torch.arange(2, 400, 5)
    found, exact = nystrom(kernel[rows], kernel[:, 1::3], rows, 2), kernel_svd(kernel, 2)
    torch.testing.assert_close(found.values, exact.values, rtol=0.02, atol=0)
    for one, other in ((found.left, exact.left), (found.right, exact.right)):
        torch.testing.assert_close(one.norm(dim=0), torch.ones(2, dtype=torch.float64), rtol=0.02, atol=0)
        assert ((one * other).sum(0).abs() > 0.999).all()


def test_landmarks_are_different_and_drawn() -> None:
    chosen = landmarks(50, 20, torch.Generator().manual_seed(0))
    assert len(set(chosen.tolist())) == 20
    assert chosen.tolist() == sorted(chosen.tolist()) != list(range(20))
