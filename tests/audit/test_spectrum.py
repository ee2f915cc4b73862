"""Spectra of matrices whose spectra are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from kattn_cli.audit.spectrum import (
    OVERSAMPLING,
    RANK,
    explained_variance,
    joined,
    ranks,
    spectra_of,
    spectra_of_values,
)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def of_rank(r: int, n: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Tensor:
    draw = [torch.randn(1, 1, n, r, generator=generator, dtype=torch.float64) for _ in range(2)]
    return (draw[0] @ draw[1].mT).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("r", [1, 3, 8])
def test_rank_is_found_exactly(r: int, dtype: torch.dtype, generator: torch.Generator) -> None:
    found = spectra_of(of_rank(r, 9, generator, dtype), generator)
    assert ranks(found).numerical.item() == r
    assert explained_variance(found)[..., r - 1 :].numpy() == pytest.approx(1, abs=1e-6)


def test_equal_singular_values_have_that_effective_rank(generator: torch.Generator) -> None:
    """A projection onto r directions: all three counts are r, but 90 % of 8 need 8."""
    basis = torch.linalg.qr(torch.randn(20, 8, generator=generator, dtype=torch.float64)).Q
    found = ranks(spectra_of((basis @ basis.mT)[None, None], generator))
    assert [one.item() for one in found] == pytest.approx([8, 8, 8])


def test_diagonal_by_hand(generator: torch.Generator) -> None:
    """σ = 4, 3, 0: explained 16/25, 1, 1; effective rank exp(H(4/7, 3/7))."""
    found = spectra_of(torch.diag(torch.tensor([3.0, 0.0, -4.0]))[None, None], generator)
    assert found.values.flatten().tolist() == [4, 3, 0]
    torch.testing.assert_close(explained_variance(found).flatten(), torch.tensor([0.64, 1.0, 1.0]).double())
    counted = ranks(found)
    entropy = -(4 / 7 * math.log(4 / 7) + 3 / 7 * math.log(3 / 7))
    assert counted.effective.item() == pytest.approx(math.exp(entropy))
    assert (counted.numerical.item(), counted.ninety.item()) == (2, 2)


def test_uniform_attention_has_rank_one(generator: torch.Generator) -> None:
    counted = ranks(spectra_of(torch.full((1, 1, 50, 50), 1 / 50), generator))
    assert (counted.numerical.item(), counted.ninety.item()) == (1, 1)
    assert counted.effective.item() == pytest.approx(1, abs=1e-4)


def test_randomised_values_are_within_their_stated_error(generator: torch.Generator) -> None:
    """A spectrum that falls slowly, so that the error is not 0, and the bound is not vacuous."""
    n = 600
    left, right = (torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q for _ in range(2))
    true = 1 / torch.arange(1, n + 1, dtype=torch.float64)
    matrix = (left * true @ right)[None, None]
    found = spectra_of(matrix, generator, exact_up_to=100)
    off = (found.values[0, 0] - true[:256]).abs()
    error = found.error.item()
    assert found.values.shape == (1, 1, 256)
    assert off.max() < error < 0.06
    assert off[:50].max() < 1e-6
    assert found.energy.item() == pytest.approx(true.square().sum().item())
    exact = spectra_of(matrix, generator)
    assert exact.error.item() == 0
    np.testing.assert_allclose(explained_variance(found)[0, 0, :50], explained_variance(exact)[0, 0, :50], atol=1e-9)


def test_randomised_values_of_a_low_rank_matrix_are_exact(generator: torch.Generator) -> None:
    matrix = of_rank(30, 400, generator)
    found = spectra_of(matrix, generator, exact_up_to=100)
    np.testing.assert_allclose(found.values[0, 0, :30], np.linalg.svd(matrix[0, 0])[1][:30], rtol=1e-9)
    assert found.error.item() < 1e-13 * found.values.max()
    assert ranks(found).numerical.item() == 30


def test_the_stated_error_of_a_nearly_low_rank_matrix_is_that_of_what_is_left_out(generator: torch.Generator) -> None:
    """At 1e-10 of the norm: at least what any basis of as many columns leaves out, by numpy, and little more."""
    matrix = of_rank(30, 400, generator)
    noise = torch.randn(1, 1, 400, 400, generator=generator, dtype=torch.float64)
    matrix = torch.cat([matrix + 1e-10 * matrix.norm() * noise / noise.norm(), 3 * matrix], dim=1)
    error = spectra_of(matrix, generator, exact_up_to=100).error[0].tolist()
    values = np.linalg.svd(matrix[0, 0])[1]
    least = float(np.linalg.norm(values[RANK + OVERSAMPLING :]))
    assert 1e-11 < least / values[0] < 1e-9
    assert least < error[0] < 2 * least
    assert error[1] < 1e-13 * values[0]


def test_several_batches_are_joined_and_an_operator_tells_its_own_values(generator: torch.Generator) -> None:
    parts = [spectra_of_values(torch.tensor([[[2.0, 1.0]]])), spectra_of_values(torch.tensor([[[4.0, 0.0]]]))]
    found = joined(parts)
    assert found.values.tolist() == [[[2.0, 1.0]], [[4.0, 0.0]]]
    assert found.energy.tolist() == [[5.0], [16.0]]
    assert ranks(found).numerical.tolist() == [[2.0], [1.0]]
