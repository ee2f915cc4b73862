"""Kernel PCA: the dual against scikit-learn, autograd and the other solvers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import check_grad
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from kattn_cli.audit.gram import centred
from kattn_cli.kernel_pca.solvers import (
    Array,
    Components,
    dual_objective,
    full,
    kernel_pca_dual,
    lanczos,
    randomised,
    root_trace,
    variance_gap,
)

POINTS = load_digits().data[:400] / 16
GAMMA = 0.05
GRAM = centred(rbf_kernel(POINTS, gamma=GAMMA))


def draws() -> np.random.Generator:
    return np.random.default_rng(0)


def same_signs(found: Array, expected: Array) -> Array:
    return found * np.sign((found * expected).sum(0))


@pytest.mark.parametrize("solver", [kernel_pca_dual, lanczos, full, randomised])
def test_equal_to_scikit_learn(solver: Callable[..., Components]) -> None:
    """The randomised one at its defaults is no tighter than 1e-4 here; all others agree within 1e-6."""
    reference = KernelPCA(8, kernel="rbf", gamma=GAMMA, eigen_solver="dense")
    scores = reference.fit_transform(POINTS)
    found = solver(GRAM, 8, draws())
    tolerance = 1e-4 if solver is randomised else 1e-6
    np.testing.assert_allclose(found.values, reference.eigenvalues_, atol=tolerance)
    np.testing.assert_allclose(
        same_signs(found.vectors, scores),
        reference.eigenvectors_ * np.sign((reference.eigenvectors_ * scores).sum(0)),
        atol=tolerance,
    )
    np.testing.assert_allclose(same_signs(found.scores, scores), scores, atol=tolerance)


def test_the_gradient_by_autograd_and_by_differences() -> None:
    gram, h = GRAM[:20, :20], draws().normal(size=(20, 3))
    variable = torch.tensor(h, requires_grad=True)
    squares = torch.linalg.eigvalsh(variable.T @ torch.tensor(gram) @ variable)
    objective = variable.square().sum() / 2 - squares.sqrt().sum()
    objective.backward()
    value, gradient = dual_objective(h, gram)
    assert value == pytest.approx(objective.item(), abs=1e-12)
    assert variable.grad is not None
    np.testing.assert_allclose(gradient, variable.grad.numpy(), atol=1e-10)
    error = check_grad(
        lambda flat: dual_objective(flat.reshape(20, 3), gram)[0],
        lambda flat: dual_objective(flat.reshape(20, 3), gram)[1].ravel(),
        h.ravel(),
    )
    assert error < 1e-5


def test_the_minimum_is_minus_half_the_variance_and_its_gradient_is_zero() -> None:
    """At ``H = U √Λ R`` for any rotation R: strong duality."""
    best = full(GRAM, 4)
    rotation, _ = np.linalg.qr(draws().normal(size=(4, 4)))
    value, gradient = dual_objective(best.vectors * np.sqrt(best.values) @ rotation, GRAM)
    assert value == pytest.approx(-best.values.sum() / 2, rel=1e-12)
    assert np.abs(gradient).max() < 1e-12
    nearby, _ = dual_objective(best.scores + 0.01 * draws().normal(size=(400, 4)), GRAM)
    assert nearby > value


def test_the_gradient_of_the_root_is_the_scores_of_an_orthonormal_frame() -> None:
    """With a linear kernel the frame can be written down: ``W = XᵀH (HᵀGH)^{−1/2}``."""
    x, h = draws().normal(size=(30, 5)), draws().normal(size=(30, 3))
    left, values, right = np.linalg.svd(x.T @ h, full_matrices=False)
    value, scores = root_trace(h, x @ x.T)
    np.testing.assert_allclose(scores, x @ (left @ right), atol=1e-12)
    assert value == pytest.approx(values.sum())


def test_more_components_than_the_rank() -> None:
    x = draws().normal(size=(50, 3))
    found = kernel_pca_dual(x @ x.T, 5, draws())
    expected = np.linalg.svd(x, compute_uv=False) ** 2
    np.testing.assert_allclose(found.values, [*expected, 0, 0], atol=1e-6)


def test_a_looser_tolerance_is_worse_and_needs_fewer_products() -> None:
    exact = full(GRAM, 8).values
    gaps = [variance_gap(kernel_pca_dual(GRAM, 8, draws(), tolerance=one), GRAM, exact) for one in (1, 1e-2, 1e-6)]
    assert gaps[0] > 1e-2 > gaps[1] > gaps[2]
    assert gaps[2] < 1e-4


def test_the_gap_by_hand() -> None:
    gram = np.diag([4.0, 3, 2, 1])
    second_and_third = Components(np.array([3.0, 2]), np.eye(4)[:, 1:3])
    assert variance_gap(second_and_third, gram, np.array([4.0, 3])) == pytest.approx(2 / 7)
    assert variance_gap(full(gram, 2), gram, np.array([4.0, 3])) == pytest.approx(0)
