"""Kernel PCA beyond the variance: robust and sparse losses, by the DC algorithm on the dual.

Source: Tonin et al., "Extending Kernel PCA through Dualization", ICML 2023. N: points, s: components.

The variance ``½‖E‖²`` of the scores E gives way to an infimal convolution ``L = ½‖·‖² □ Ψ``. The dual is
``min ½ Tr(HᵀH) + Ψ*(H) − π(H)`` with the π of :mod:`kattn_cli.kernel_pca.solvers`, and a step of the DC algorithm is
``H ← prox_{Ψ*}(∇π(H))``, at which the objective never rises. Ψ is a p-norm, or the indicator of a ball, of each
point's s scores; both prox follow from the projection on a ball, the second by Moreau's identity.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, Protocol

import numpy as np

from kattn_cli.kernel_pca.solvers import Array, inverse_root, root_trace

Order = Literal["1", "2", "inf"]
"""Of a norm: 1, 2 or infinite."""
_CONJUGATE: dict[Order, Order] = {"1": "inf", "2": "2", "inf": "1"}


class Loss(Protocol):
    """``L = ½‖·‖² □ Ψ``, by what the dual needs of it."""

    def prox(self, y: Array) -> Array:
        """Return ``prox_{Ψ*}`` of ``(N, s)``, of the same shape."""

    def conjugate(self, h: Array) -> float:
        """Return ``Ψ*(H)`` where that is finite."""

    @property
    def rotates(self) -> bool:
        """Whether L is the same for all orthonormal bases of the components."""


class Huber(NamedTuple):
    """``Ψ = κ Σ_i ‖e_i‖_p``: a point counts by its square up to κ, and then linearly. Robust to outliers.

    ``Ψ*`` is 0 where every row of H lies in the q-ball of radius κ, so no point can weigh more than that. p = 1 is
    Huber's loss of each single score, p = 2 of each point's length.
    """

    kappa: float
    p: Order = "2"

    def prox(self, y: Array) -> Array:
        """Return every row's projection on the q-ball of radius κ."""
        return project_rows(y, self.kappa, _CONJUGATE[self.p])

    def conjugate(self, h: Array) -> float:
        """Return 0, since H is in the ball."""
        return 0.0

    @property
    def rotates(self) -> bool:
        """Whether p is 2, since only a point's length does not depend on the basis."""
        return self.p == "2"


class Insensitive(NamedTuple):
    """Ψ the indicator of ``‖e_i‖_p ≤ ε``: L is half the squared distance from that ball. Sparse in H.

    ``Ψ* = ε Σ_i ‖h_i‖_q``: for p = 2 a point with scores shorter than ε drops out; for p = inf each score below ε does.
    """

    epsilon: float
    p: Order = "2"

    def prox(self, y: Array) -> Array:
        """Return what every row's projection on the p-ball of radius ε leaves: soft thresholds for p = 2 and inf."""
        return y - project_rows(y, self.epsilon, self.p)

    def conjugate(self, h: Array) -> float:
        """Return ``ε Σ_i ‖h_i‖_q``."""
        order = {"1": np.inf, "2": 2, "inf": 1}[self.p]
        return self.epsilon * float(np.linalg.norm(h, ord=order, axis=1).sum())

    @property
    def rotates(self) -> bool:
        """Whether p is 2, since only a point's length does not depend on the basis."""
        return self.p == "2"


class RobustComponents(NamedTuple):
    """The directions ``w_j = Σ_i φ(x_i) a_ij`` found, orthonormal in feature space.

    Where L does not depend on the basis, that in which the scores are uncorrelated, the largest first.
    """

    weights: Array
    """A ``(N, s)``, with ``AᵀGA = I`` (a projection where its rank is lower). A new point's scores: ``k(x, X) A``."""
    scores: Array
    """``GA``, ``(N, s)``."""
    dual: Array
    """H ``(N, s)``."""
    objective: list[float]
    """The dual objective after each step."""


def robust_kernel_pca(
    gram: Array,
    components: int,
    loss: Loss,
    draws: np.random.Generator,
    *,
    start: Array | None = None,
    tolerance: float = 1e-8,
    iterations: int = 10_000,
) -> RobustComponents:
    """Return a critical point, not always the best, by the DC algorithm from ``start`` ``(N, s)`` or a random one.

    Without a loss but the variance (κ → ∞, ε → 0) it is kernel PCA, and converges as the power method does.

    Args:
        tolerance: stop when ``‖H⁺ − H‖ ≤ tolerance ‖H⁺‖``.

    Raises:
        ValueError: if H becomes 0, for an ε that no point's scores exceed, κ = 0, or a Gram matrix of zeros.
    """
    h = draws.normal(size=(len(gram), components)) if start is None else start
    scores = root_trace(h, gram)[1]
    objective: list[float] = []
    for _ in range(iterations):
        previous, h = h, loss.prox(scores)
        if not h.any():
            raise ValueError(f"{loss}: every dual coefficient is 0; a smaller ε or larger κ keeps some points")
        value, scores = root_trace(h, gram)
        objective.append(float(np.vdot(h, h)) / 2 + loss.conjugate(h) - value)
        if np.linalg.norm(h - previous) <= tolerance * np.linalg.norm(h):
            break
    weights = h @ inverse_root(h.T @ gram @ h)[0]
    if loss.rotates:
        _, _, rows = np.linalg.svd(scores, full_matrices=False)
        h, weights, scores = h @ rows.T, weights @ rows.T, scores @ rows.T
    return RobustComponents(weights, scores, h, objective)


def project_rows(y: Array, radius: float, order: Order) -> Array:
    """Return the point of the ball of this radius and norm that is nearest to each row, ``(N, s)``."""
    if math.isinf(radius):
        return y
    if order == "inf":
        return np.clip(y, -radius, radius)
    if order == "2":
        lengths = np.linalg.norm(y, axis=1, keepdims=True)
        return y * (radius / np.maximum(lengths, radius)) if radius else np.zeros_like(y)
    sizes = np.abs(y)
    ranked = -np.sort(-sizes, axis=1)
    thresholds = (ranked.cumsum(axis=1) - radius) / np.arange(1, y.shape[1] + 1)
    threshold = thresholds.max(axis=1, keepdims=True).clip(min=0)
    return np.sign(y) * np.maximum(sizes - threshold, 0)
