"""Robust and sparse kernel PCA: the projections, the DC algorithm, and planted outliers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from kattn_cli.audit.gram import centred
from kattn_cli.kernel_pca.robust import Huber, Insensitive, Loss, Order, project_rows, robust_kernel_pca
from kattn_cli.kernel_pca.solvers import Array, full

GRAM = centred(rbf_kernel(load_digits().data[:150] / 16, gamma=0.05))
LOSSES: list[Loss] = [kind(size, p) for kind, size in ((Huber, 0.2), (Insensitive, 0.2)) for p in ("1", "2", "inf")]
ORDERS: dict[Order, float] = {"1": 1, "2": 2, "inf": np.inf}


def draws(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def loss_value(loss: Loss, scores: Array) -> float:
    """``L(E)``, from its conjugate ``½‖H‖² + Ψ*(H)``, which ``H = prox_{Ψ*}(E)`` attains."""
    h = loss.prox(scores)
    return float(np.vdot(h, scores) - np.vdot(h, h) / 2) - loss.conjugate(h)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("radius", [0.3, 0.9])
def test_projections_by_what_makes_them_nearest(order: Order, radius: float) -> None:
    """P is nearest to y where no z of the ball has ``⟨y − P, z − P⟩ > 0``; max ``⟨y − P, z⟩`` is a dual norm's."""
    y = draws().normal(size=(50, 3))
    found = project_rows(y, radius, order)
    dual = {"1": np.inf, "2": 2, "inf": 1}[order]
    assert (np.linalg.norm(found, ORDERS[order], axis=1) <= radius + 1e-12).all()
    largest = radius * np.linalg.norm(y - found, dual, axis=1)
    np.testing.assert_allclose(((y - found) * found).sum(axis=1), largest, atol=1e-12)
    inside = y * radius / np.linalg.norm(y, ORDERS[order], axis=1, keepdims=True)
    np.testing.assert_allclose(project_rows(inside, 1.01 * radius, order), inside)
    np.testing.assert_array_equal(project_rows(y, 0.0, order), 0 * y)
    np.testing.assert_array_equal(project_rows(y, np.inf, order), y)


def test_losses_by_hand() -> None:
    """Of one point with scores (3, 4), length 5."""
    e = np.array([[3.0, 4.0]])
    assert loss_value(Huber(np.inf), e) == pytest.approx(12.5)
    assert loss_value(Huber(2.0), e) == pytest.approx(2 * 5 - 2)
    assert loss_value(Huber(2.0, "1"), e) == pytest.approx(2 * 3 - 2 + 2 * 4 - 2)
    assert loss_value(Insensitive(2.0), e) == pytest.approx((5 - 2) ** 2 / 2)
    assert loss_value(Insensitive(3.5, "inf"), e) == pytest.approx(0.5**2 / 2)
    assert loss_value(Insensitive(6.0), e) == 0


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_objective_never_rises_and_ends_at_minus_the_loss(loss: Loss) -> None:
    found = robust_kernel_pca(GRAM, 3, loss, draws())
    objective = np.array(found.objective)
    assert len(objective) > 3
    assert (np.diff(objective) <= 1e-12 * abs(objective[0])).all()
    assert objective[0] - objective[-1] > 1e-3
    assert objective[-1] == pytest.approx(-loss_value(loss, found.scores), rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_directions_are_orthonormal_and_give_the_scores(loss: Loss) -> None:
    found = robust_kernel_pca(GRAM, 3, loss, draws())
    np.testing.assert_allclose(found.weights.T @ GRAM @ found.weights, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(GRAM @ found.weights, found.scores, atol=1e-10)
    np.testing.assert_allclose(found.dual, loss.prox(found.scores), atol=1e-6)


@pytest.mark.parametrize("loss", [Huber(np.inf), Huber(1e6), Insensitive(0.0), Insensitive(1e-12)], ids=str)
def test_kernel_pca_in_the_limit(loss: Loss) -> None:
    found = robust_kernel_pca(GRAM, 3, loss, draws(), tolerance=1e-10)
    plain = full(GRAM, 3)
    signs = np.sign((found.scores * plain.scores).sum(0))
    np.testing.assert_allclose(found.scores * signs, plain.scores, atol=1e-6)
    assert found.objective[-1] == pytest.approx(-plain.values.sum() / 2)


def test_huber_bounds_what_a_point_weighs() -> None:
    lengths = np.linalg.norm(robust_kernel_pca(GRAM, 3, Huber(0.2), draws()).dual, axis=1)
    assert lengths.max() == pytest.approx(0.2)
    entries = np.abs(robust_kernel_pca(GRAM, 3, Huber(0.2, "1"), draws()).dual)
    assert entries.max() == pytest.approx(0.2)


def test_points_within_epsilon_drop_out() -> None:
    """With p = 2 whole points, and exactly those; with p = inf single scores. None does under Huber's loss."""
    found = robust_kernel_pca(GRAM, 3, Insensitive(0.4), draws())
    short = np.linalg.norm(found.scores, axis=1) <= 0.4
    assert 10 < short.sum() < 140
    np.testing.assert_array_equal(~found.dual.any(axis=1), short)
    single = robust_kernel_pca(GRAM, 3, Insensitive(0.2, "inf"), draws())
    assert (single.dual == 0).mean() > 0.3
    assert (robust_kernel_pca(GRAM, 3, Huber(0.2), draws()).dual != 0).all()


def test_nothing_left_is_said() -> None:
    with pytest.raises(ValueError, match="a smaller ε or larger κ keeps some points"):
        robust_kernel_pca(GRAM, 3, Insensitive(1e3), draws())


@pytest.mark.parametrize("seed", range(5))
def test_outliers_turn_the_plain_subspace_and_not_the_robust_one(seed: int) -> None:
    """300 points near a plane, 9 of them moved far along a third direction; angles to the plane in degrees.

    Huber's loss bounds what an outlier weighs and does not remove it: the plane found is tilted, where plain kernel PCA
    exchanges one of its directions for the outliers'.
    """
    random = draws(seed)
    axes, _ = np.linalg.qr(random.normal(size=(10, 10)))
    x = random.normal(size=(300, 2)) * 2 @ axes[:, :2].T + 0.1 * random.normal(size=(300, 10))
    x[:9] = 12 * random.choice([-1, 1], size=(9, 1)) * axes[:, 2] + 0.1 * random.normal(size=(9, 10))
    gram = x @ x.T

    def angle(weights: Array) -> float:
        return float(np.degrees(subspace_angles(x.T @ weights, axes[:, :2]).max()))

    assert angle(full(gram, 2).vectors) > 85
    assert angle(robust_kernel_pca(gram, 2, Huber(0.3), draws()).weights) < 19
    assert angle(robust_kernel_pca(gram, 2, Huber(0.3, "1"), draws()).weights) < 23
