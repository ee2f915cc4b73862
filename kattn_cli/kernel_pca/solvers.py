"""Kernel PCA in the dual, and three standard ways to the same components.

Source: Tonin et al., "Extending Kernel PCA through Dualization", ICML 2023. N: points, s: components.

Kernel PCA finds the orthonormal frame W of feature space whose scores ``ΓW = (⟨φ(x_i), w_j⟩)`` have the largest
``½‖ΓW‖²``. Its dual, a difference of convex functions, is ``min ½ Tr(HᵀH) − π(H)`` over H ``(N, s)`` with
``π(H) = Tr √(HᵀGH)``; at the optimum H spans the top s eigenvectors of the Gram matrix G, and the minimum is minus half
the sum of its top s eigenvalues.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import eigsh
from sklearn.utils.extmath import randomized_svd

Array = NDArray[np.float64]


class Components(NamedTuple):
    """Eigenvalues ``(s,)`` and orthonormal eigenvectors ``(N, s)`` of a Gram matrix, largest first."""

    values: Array
    vectors: Array

    @property
    def scores(self) -> Array:
        """``⟨φ(x_i), w_j⟩``, ``(N, s)``: what scikit-learn's ``KernelPCA.fit_transform`` returns, up to signs."""
        return self.vectors * np.sqrt(np.clip(self.values, 0, None))


def inverse_root(matrix: Array) -> tuple[Array, float]:
    """Return ``M^{−1/2}`` on the range of a positive semidefinite M ``(s, s)``, 0 off it, and ``Tr √M``."""
    squares, rotation = np.linalg.eigh(matrix)
    roots = np.sqrt(np.clip(squares, 0, None))
    # below this an eigenvalue is rounding, and its inverse root would blow that up
    there = squares > squares[-1] * len(squares) * np.finfo(float).eps
    inverse = np.divide(1, roots, out=np.zeros_like(roots), where=there)
    return rotation * inverse @ rotation.T, float(roots.sum())


def root_trace(h: Array, gram: Array) -> tuple[float, Array]:
    """Return ``π(H) = Tr √(HᵀGH)`` and its gradient ``GH (HᵀGH)^{−1/2}``, the scores of an orthonormal frame.

    Where ``HᵀGH`` is singular, a subgradient.
    """
    projected = gram @ h
    inverse, trace = inverse_root(h.T @ projected)
    return trace, projected @ inverse


def dual_objective(h: Array, gram: Array) -> tuple[float, Array]:
    """Return ``½ Tr(HᵀH) − Tr √(HᵀGH)``, minus half the variance at the optimum, and its gradient ``H − ∇π(H)``."""
    value, gradient = root_trace(h, gram)
    return float(np.vdot(h, h)) / 2 - value, h - gradient


def kernel_pca_dual(
    gram: Array,
    components: int,
    draws: np.random.Generator,
    *,
    tolerance: float = 1e-15,
    memory: int = 10,
    iterations: int = 1000,
) -> Components:
    """Return the top components by L-BFGS on :func:`dual_objective`, from a random start.

    The components are read off the last scores ``E = ∇π(H)`` by their singular vectors (Rayleigh–Ritz in feature
    space), which needs no further product with G.

    Args:
        tolerance: stop when ``‖H − E‖² ≤ tolerance ‖E‖²``. Primal and dual value differ by half the left side, so this
            is their relative gap, to be had in every step. It is no bound on the distance from the best s components:
            any s eigenvectors close the gap, though all but the best are saddles, which a loose tolerance may stop at.
        memory: pairs that L-BFGS keeps.
    """
    dual = _Scaled(gram, (len(gram), components))
    dual(draws.normal(size=dual.shape))
    start = dual.scores
    _, gradient = dual(start)
    if dual.gap > tolerance:
        dual.unit = float(np.linalg.norm(gradient))

        def stop_at_tolerance(_: Array) -> None:
            if dual.gap <= tolerance:
                raise StopIteration

        options = {"maxcor": memory, "maxiter": iterations, "maxfun": 20 * iterations, "ftol": 0, "gtol": 0}
        minimize(
            dual, start.ravel() / dual.unit, jac=True, method="L-BFGS-B", callback=stop_at_tolerance, options=options
        )
    vectors, roots, _ = scipy.linalg.svd(dual.scores, full_matrices=False)
    return Components(roots**2, vectors)


class _Scaled:
    """:func:`dual_objective` of ``H / unit`` as scipy wants it; scores and gap are those of the last call.

    scipy's first step has length 1. In the unit of the first gradient's norm, that is the step of the DC algorithm.
    """

    def __init__(self, gram: Array, shape: tuple[int, int]) -> None:
        self.gram, self.shape, self.unit = gram, shape, 1.0
        self.scores, self.gap = np.zeros(shape), np.inf

    def __call__(self, flat: Array) -> tuple[float, Array]:
        h = flat.reshape(self.shape) * self.unit
        value, gradient = dual_objective(h, self.gram)
        self.scores = h - gradient
        energy = float(np.vdot(self.scores, self.scores))
        self.gap = float(np.vdot(gradient, gradient)) / energy if energy else 0.0
        return value / self.unit**2, gradient.ravel() / self.unit


def full(gram: Array, components: int, draws: np.random.Generator | None = None) -> Components:
    """Return the top components by LAPACK's decomposition of a symmetric matrix; nothing is drawn."""
    size = len(gram)
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=[size - components, size - 1])
    return Components(values[::-1], vectors[:, ::-1])


def lanczos(
    gram: Array, components: int, draws: np.random.Generator, *, tolerance: float = 0.0, vectors: int | None = None
) -> Components:
    """Return the top components by ARPACK.

    ``tolerance``: of each eigenvalue, 0 for machine precision; ``vectors``: how many it keeps.
    """
    start = draws.normal(size=len(gram))
    values, found = eigsh(gram, k=components, tol=tolerance, ncv=vectors, v0=start)
    return Components(values[::-1], found[:, ::-1])


def randomised(
    gram: Array, components: int, draws: np.random.Generator, *, oversampling: int = 10, power: int | None = None
) -> Components:
    """Return the top components by scikit-learn's ``randomized_svd``.

    Its defaults are ours: 4 power iterations, 7 where s < N/10. We take its right singular vectors, which saw
    one product with G more than the left ones.
    """
    _, values, rows = randomized_svd(
        gram,
        components,
        n_oversamples=oversampling,
        n_iter="auto" if power is None else power,
        random_state=int(draws.integers(2**31)),
    )
    return Components(values, rows.T)


def variance_gap(found: Components, gram: Array, exact: Array) -> float:
    """Return the share of the best s components' variance that the vectors V miss, ``1 − Tr(VᵀGV) / Σ λ``.

    ``exact``: the top s eigenvalues λ.
    """
    return 1 - float(np.vdot(found.vectors, gram @ found.vectors)) / float(exact.sum())
