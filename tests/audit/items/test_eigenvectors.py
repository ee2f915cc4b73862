"""The eigenvector check by its definition, on eigenvectors, and on random values, which pass the paper's reading."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest
import torch
from torch import Tensor

from kattn_cli.audit.gram import centred, normalised_gram
from kattn_cli.audit.items.alignment.theorem_values import theorem_values
from kattn_cli.audit.items.eigenvectors import measure as module
from kattn_cli.audit.items.eigenvectors.measure import eigenvector_check


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def k(generator: torch.Generator) -> Tensor:
    return torch.randn(2, 3, 9, 4, generator=generator)


@pytest.fixture
def v(generator: torch.Generator) -> Tensor:
    return torch.randn(2, 3, 9, 5, generator=generator)


def test_centring_is_its_own_pseudo_inverse() -> None:
    centring = torch.eye(7, dtype=torch.float64) - 1 / 7
    assert torch.linalg.matrix_rank(centring) == 6
    torch.testing.assert_close(torch.linalg.pinv(centring), centring)


def test_is_the_definition(k: Tensor, v: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 100)
    check = eigenvector_check(k, v)
    inverse = torch.linalg.pinv(torch.eye(9, dtype=torch.float64) - 1 / 9)
    for b, h, d in itertools.product(range(2), range(3), range(5)):
        gram = normalised_gram(k[b, h])
        tilde = centred(gram.gram)
        a = inverse @ torch.diag(gram.normaliser) @ v[b, h, :, d].double()
        gamma = (tilde @ a / (9 * a)).tolist()
        differences = [abs(gamma[i] - gamma[j]) for i in range(9) for j in range(i)]
        rho = a @ tilde @ a / (a @ a)
        expected = {
            "difference_mean": statistics.mean(differences),
            "difference_std": statistics.pstdev(differences),
            "difference_median": statistics.median(differences),
            "residual": ((tilde @ a - rho * a).norm() / (tilde @ a).norm()).item(),
        }
        for field, value in expected.items():
            assert getattr(check, field)[b, h, d].item() == pytest.approx(value, rel=1e-9), field


def test_eigenvalues_are_those_of_the_gram_over_n(k: Tensor, v: Tensor) -> None:
    eigenvalues = eigenvector_check(k, v).eigenvalues
    expected = torch.linalg.eigvalsh(centred(normalised_gram(k).gram) / 9).flip(-1)
    torch.testing.assert_close(eigenvalues, expected, rtol=1e-9, atol=1e-16)
    torch.testing.assert_close(eigenvalues[..., :5], theorem_values(k, 5).eigenvalues)


def test_eigenvectors_pass(k: Tensor) -> None:
    theorem = theorem_values(k, 5)
    check = eigenvector_check(k, theorem.values)
    assert check.residual.max() < 1e-12
    assert (check.difference_mean < 1e-10 * theorem.eigenvalues).all()
    assert (check.difference_std < 1e-10 * theorem.eigenvalues).all()


def test_residual_of_a_sum_of_two_eigenvectors(k: Tensor) -> None:
    """Of unit eigenvectors ``u₁ + t u₂``: ``t (λ₁ − λ₂) / √((1 + t²) (λ₁² + t² λ₂²))``."""
    t = 2.0
    theorem = theorem_values(k, 2)
    first, second = (theorem.values * theorem.eigenvalues[..., None, :].sqrt()).unbind(-1)
    residual = eigenvector_check(k, (first + t * second)[..., None]).residual[..., 0]
    one, two = theorem.eigenvalues.unbind(-1)
    torch.testing.assert_close(residual, t * (one - two) / ((1 + t * t) * (one**2 + t * t * two**2)).sqrt())


def test_a_columns_scale_makes_no_difference(k: Tensor, v: Tensor) -> None:
    scaled = eigenvector_check(k, v * torch.tensor([1e-20, -1.0, 3.0, 1e5, 1e20]))
    for ours, expected in zip(scaled, eigenvector_check(k, v), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=0)


def test_random_values_have_small_differences_too(generator: torch.Generator) -> None:
    """The paper's evidence holds for values that are no eigenvectors, as the eigenvalues are as small."""
    k, v = torch.randn(2, 32, 65, 16, generator=generator)
    random = eigenvector_check(k, v)
    assert random.difference_median.max() < 1e-4
    assert random.difference_mean.median() < 1e-3
    assert random.residual.mean() > 0.5
    largest = random.eigenvalues[..., 0]
    assert largest.max() < 1e-3
    assert random.difference_mean.mean() > 2 * largest.mean()


@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 5.0])
def test_no_eigenvalue_exceeds_one(size: float, generator: torch.Generator) -> None:
    """The paper reports 648.46 for the largest; ``tr K̃_φ / N`` is at most the mean of ``exp(−‖k‖²/√d)``."""
    k = size * torch.randn(8, 20, 4, generator=generator, dtype=torch.float64)
    eigenvalues = eigenvector_check(k, k).eigenvalues
    assert (eigenvalues.sum(-1) <= (-k.square().sum(-1) / 2).exp().mean(-1)).all()


def test_keys_beyond_float64(generator: torch.Generator) -> None:
    """K̃ is then of rank one, at the key of smallest g, and â points at that of largest g: the sine is by hand."""
    k = 30 * torch.randn(5, 16, generator=generator)
    check = eigenvector_check(k, torch.randn(5, 3, generator=generator))
    torch.testing.assert_close(check.residual, torch.full((3,), math.sqrt(1 - 1 / 16), dtype=torch.float64))
    assert check.difference_mean.isfinite().all()


def test_values_that_leave_no_coefficients() -> None:
    """``v = 0``: there is no direction to check."""
    check = eigenvector_check(torch.eye(4), torch.zeros(4, 1))
    assert check.residual.isnan().all()
    assert check.difference_median.isnan().all()
