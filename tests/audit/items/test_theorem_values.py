"""Theorem 1 against principal axes found in explicit feature spaces."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kattn_cli.audit.gram import LogKernel, centred, log_exponential, normalised_gram
from kattn_cli.audit.items.alignment.theorem_values import theorem_values
from kattn_cli.kernels.softmax import softmax_matrix

D = 2


def log_polynomial(x: Tensor, y: Tensor) -> Tensor:
    return 2 * (1 + x @ y.mT).abs().log()


def polynomial_features(x: Tensor) -> Tensor:
    """ψ with ψ(x)ᵀψ(y) = (1 + xᵀy)²."""
    a, b = x.unbind(-1)
    root = math.sqrt(2)
    return torch.stack([torch.ones_like(a), root * a, root * b, a * a, b * b, root * a * b], -1)


def exponential_features(x: Tensor) -> Tensor:
    """ψ with ψ(x)ᵀψ(y) = exp(xᵀy/√2), to 25 terms of each coordinate's power series."""
    powers = torch.arange(25, dtype=torch.float64)
    series = (x[..., None] / D**0.25) ** powers / powers.add(1).lgamma().div(2).exp()
    return (series[..., 0, :, None] * series[..., 1, None, :]).flatten(-2)


Features = Callable[[Tensor], Tensor]
KERNELS = pytest.mark.parametrize(
    ("log_kernel", "features"),
    [(log_polynomial, polynomial_features), (log_exponential, exponential_features)],
    ids=["polynomial", "exponential"],
)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def q(generator: torch.Generator) -> Tensor:
    return torch.randn(7, D, generator=generator, dtype=torch.float64)


@pytest.fixture
def k(generator: torch.Generator) -> Tensor:
    return torch.randn(9, D, generator=generator, dtype=torch.float64)


@KERNELS
def test_attention_is_the_projection_on_the_principal_axes(
    log_kernel: LogKernel, features: Features, q: Tensor, k: Tensor
) -> None:
    torch.testing.assert_close(features(q) @ features(k).T, log_kernel(q, k).exp(), rtol=1e-9, atol=1e-12)
    phi_q = features(q) / (features(q) @ features(k).T).sum(-1, keepdim=True)
    phi_k = features(k) / (features(k) @ features(k).T).sum(-1, keepdim=True)
    away = phi_k - phi_k.mean(0)
    eigenvalues, axes = torch.linalg.eigh(away.T @ away / len(k))
    eigenvalues, axes = eigenvalues.flip(-1)[:4], axes.flip(-1)[:, :4]

    theorem = theorem_values(k, 4, log_kernel)
    torch.testing.assert_close(theorem.eigenvalues, eigenvalues, rtol=1e-8, atol=0)
    ours = away.T @ theorem.coefficients
    torch.testing.assert_close(ours.T @ ours, torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-8)
    signs = (ours * axes).sum(0).sign()
    torch.testing.assert_close(ours, axes * signs, rtol=0, atol=1e-8)
    h = log_kernel(q, k).softmax(-1) @ theorem.values
    torch.testing.assert_close(h, phi_q @ axes * signs, rtol=1e-7, atol=1e-10)


def test_attention_of_the_default_kernel_is_softmax(q: Tensor, k: Tensor) -> None:
    torch.testing.assert_close(log_exponential(q, k).softmax(-1), softmax_matrix(q, k))


def test_coefficients_are_scaled_eigenvectors(generator: torch.Generator) -> None:
    """Eq. 11, in float64 also for float32 keys with leading axes."""
    k = torch.randn(2, 3, 9, 4, generator=generator)
    theorem = theorem_values(k, 5)
    gram = centred(normalised_gram(k).gram)
    a = theorem.coefficients
    torch.testing.assert_close(gram @ a, 9 * theorem.eigenvalues[..., None, :] * a)
    unit = torch.eye(5, dtype=torch.float64).expand(2, 3, 5, 5)
    torch.testing.assert_close(a.mT @ gram @ a, unit, rtol=0, atol=1e-12)
    assert (theorem.eigenvalues.diff(dim=-1) < 0).all()


def test_second_term_of_the_values_is_zero(generator: torch.Generator) -> None:
    """``1_N a_d = 0`` for ``λ_d > 0``: the formula as printed, and without its second term."""
    k = torch.randn(3, 9, 4, generator=generator)
    theorem, g = theorem_values(k, 5), normalised_gram(k).normaliser
    a = theorem.coefficients
    assert (theorem.eigenvalues > 0).all()
    assert (a.mean(-2) / a.abs().amax(-2)).abs().max() < 1e-12
    printed = a / g[..., None] - a.mean(-2, keepdim=True) / g[..., None]
    torch.testing.assert_close(theorem.values, printed)
    torch.testing.assert_close(theorem.values, a / g[..., None])


def test_no_axes_beyond_the_rank(generator: torch.Generator) -> None:
    """Three different keys, each twice, span two directions about their mean."""
    k = torch.randn(3, 4, generator=generator).repeat(2, 1)
    theorem = theorem_values(k, 6)
    assert (theorem.eigenvalues > 0).tolist() == [True, True] + [False] * 4
    assert theorem.values[:, :2].abs().amin(0).gt(0).all()
    assert theorem.values[:, 2:].eq(0).all()
    assert theorem.coefficients[:, 2:].eq(0).all()


def test_keys_of_norm_30(generator: torch.Generator) -> None:
    """With √d = 4, ``K_φ = e^(−225) I`` but for e^(−45): so ``‖a_d‖ = e^112.5`` and ``‖v_d‖ = e^(−112.5)``."""
    k = 30 * torch.nn.functional.normalize(torch.randn(6, 16, generator=generator, dtype=torch.float64), dim=-1)
    theorem = theorem_values(k, 5)
    log_norms = theorem.values.norm(dim=0).log()
    torch.testing.assert_close(log_norms, torch.full((5,), -112.5, dtype=torch.float64))
    torch.testing.assert_close(theorem.coefficients.norm(dim=0).log(), -log_norms)
    torch.testing.assert_close(theorem.eigenvalues.log(), torch.full((5,), -225 - math.log(6), dtype=torch.float64))
    torch.testing.assert_close(theorem.scaled_values.norm(dim=0), torch.ones(5, dtype=torch.float64))


def test_scaled_values_of_keys_beyond_float64(generator: torch.Generator) -> None:
    """Entries of size 30: one axis counts, that of the key of smallest g, where all of its value lies."""
    k = 30 * torch.randn(6, 16, generator=generator)
    theorem = theorem_values(k, 4)
    smallest = normalised_gram(k).log_normaliser.argmin()
    assert theorem.scaled_values.isfinite().all()
    assert theorem.values.isfinite().all()
    row = theorem.scaled_values[smallest].abs()
    torch.testing.assert_close(row, torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64))
    assert theorem.scaled_values.abs().sum() == row.sum()


def test_more_axes_than_tokens() -> None:
    with pytest.raises(ValueError, match="3 keys have at most 3 principal axes, not 4"):
        theorem_values(torch.zeros(3, 8), 4)
