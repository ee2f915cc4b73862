"""The Gram matrix of the keys by hand, against scikit-learn, and for keys that overflow float64."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer
from torch import Tensor

from kattn_cli.audit.gram import centred, normalised_gram, times_exp


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def log_polynomial(x: Tensor, y: Tensor) -> Tensor:
    return 2 * (1 + x @ y.mT).abs().log()


def test_two_keys_by_hand() -> None:
    """Keys 0 and 1 of width 1: κ is 1, 1, 1, e, so g is 2 and 1 + e."""
    gram = normalised_gram(torch.tensor([[0.0], [1.0]]))
    g = [2, 1 + math.e]
    expected = [[1 / (g[0] * g[0]), 1 / (g[0] * g[1])], [1 / (g[1] * g[0]), math.e / (g[1] * g[1])]]
    torch.testing.assert_close(gram.gram, torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(gram.normaliser, torch.tensor(g, dtype=torch.float64))


def test_any_kernel_and_leading_axes(generator: torch.Generator) -> None:
    k = torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64)
    gram = normalised_gram(k, log_polynomial)
    kappa = (1 + k @ k.mT) ** 2
    g = kappa.sum(-1)
    torch.testing.assert_close(gram.gram, kappa / (g[..., :, None] * g[..., None, :]))
    torch.testing.assert_close(gram.normaliser, g)
    assert (gram.scaled.amax((-2, -1)) == 1).all()


def test_keys_of_size_30(generator: torch.Generator) -> None:
    """κ reaches e^1000 and more: against arithmetic of 60 digits."""
    k = 30 * torch.randn(4, 6, generator=generator, dtype=torch.float64)
    gram = normalised_gram(k)
    log_kappa = k @ k.T / math.sqrt(6)
    assert log_kappa.max() > 1000
    with localcontext() as context:
        context.prec = 60
        kappa = [[Decimal(float(entry)).exp() for entry in row] for row in log_kappa]
        g = [sum(row, Decimal()) for row in kappa]
        exact = [[kappa[i][j] / (g[i] * g[j]) for j in range(4)] for i in range(4)]
        largest = max(max(row) for row in exact)
        scaled = torch.tensor([[float(entry / largest) for entry in row] for row in exact], dtype=torch.float64)
        log_g = [float(entry.ln()) for entry in g]
        log_largest = float(largest.ln())
    torch.testing.assert_close(gram.scaled, scaled, rtol=1e-11, atol=0)
    torch.testing.assert_close(gram.log_normaliser, torch.tensor(log_g, dtype=torch.float64))
    assert gram.log_scale.item() == pytest.approx(log_largest)
    assert gram.normaliser.isinf().any()
    assert gram.gram.isfinite().all()


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_entries_cannot_exceed_the_bound(size: float, generator: torch.Generator) -> None:
    """``κ_φ(k_i, k_j) ≤ exp(−‖k_j‖²/√d)``, as ``g(k_i) ≥ κ(k_i, k_j)`` and ``g(k_j) ≥ κ(k_j, k_j)``."""
    k = size * torch.randn(5, 16, 4, generator=generator, dtype=torch.float64)
    assert (normalised_gram(k).gram <= (-k.square().sum(-1) / 2).exp()[..., None, :]).all()


def test_times_exp_where_the_factor_overflows() -> None:
    x = torch.tensor([0.0, -1e-300, 2.0], dtype=torch.float64)
    product = times_exp(x, torch.tensor(1000.0, dtype=torch.float64))
    assert product[0] == 0
    assert product[1].item() == pytest.approx(-math.exp(1000 - 300 * math.log(10)))
    assert product[2] == math.inf


def test_centring_is_that_of_scikit_learn_for_arrays_and_tensors() -> None:
    gram = rbf_kernel(np.random.default_rng(0).normal(size=(30, 4)))
    expected = KernelCenterer().fit_transform(gram)
    np.testing.assert_allclose(centred(gram), expected, atol=1e-14)
    np.testing.assert_allclose(centred(torch.tensor(gram).expand(2, 30, 30))[1], expected, atol=1e-14)


def test_centring_an_asymmetric_matrix_by_hand() -> None:
    np.testing.assert_allclose(centred(np.array([[1.0, 2], [3, 8]])), [[1, -1], [-1, 1]])
