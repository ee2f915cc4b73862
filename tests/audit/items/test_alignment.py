"""The three measures of alignment by hand, their invariances, and their null."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kattn_cli.audit.items.alignment.measure import PUBLISHED, alignment, best_assignment_cosine, kernel_cka, linear_cka

CKA = pytest.mark.parametrize("cka", [linear_cka, kernel_cka])


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _orthogonal(width: int, generator: torch.Generator) -> Tensor:
    return torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64)).Q


def _hsic(gram: list[list[float]], other: list[list[float]]) -> float:
    """``tr(K H L H)``, entry by entry, with H the centring matrix."""
    n = len(gram)

    def away(matrix: list[list[float]], i: int, j: int) -> float:
        row, column = sum(matrix[i]) / n, sum(matrix[m][j] for m in range(n)) / n
        return matrix[i][j] - row - column + sum(map(sum, matrix)) / n**2

    return sum(away(gram, i, j) * away(other, i, j) for i in range(n) for j in range(n))


def _slow_cka(gram: list[list[float]], other: list[list[float]]) -> float:
    return _hsic(gram, other) / math.sqrt(_hsic(gram, gram) * _hsic(other, other))


def _dot(x: list[float], y: list[float]) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def _linear(rows: list[list[float]]) -> list[list[float]]:
    return [[_dot(x, y) for y in rows] for x in rows]


def _rbf(rows: list[list[float]]) -> list[list[float]]:
    distances = sorted(math.dist(x, y) for i, x in enumerate(rows) for y in rows[:i])
    half = len(distances) // 2
    bandwidth = distances[half] if len(distances) % 2 else (distances[half - 1] + distances[half]) / 2
    return [[math.exp(-(math.dist(x, y) ** 2) / (2 * bandwidth**2)) for y in rows] for x in rows]


@pytest.mark.parametrize(("cka", "gram"), [(linear_cka, _linear), (kernel_cka, _rbf)])
@pytest.mark.parametrize("n", [6, 8])
def test_cka_is_plain_hsic(
    cka: Callable[[Tensor, Tensor], Tensor],
    gram: Callable[[list[list[float]]], list[list[float]]],
    n: int,
    generator: torch.Generator,
) -> None:
    a = torch.randn(2, 3, n, 4, generator=generator, dtype=torch.float64)
    b = torch.randn(2, 3, n, 5, generator=generator, dtype=torch.float64)
    ours = cka(a, b)
    assert ours.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            expected = _slow_cka(gram(a[i, j].tolist()), gram(b[i, j].tolist()))
            assert ours[i, j].item() == pytest.approx(expected, rel=1e-10)


def test_linear_cka_by_hand() -> None:
    """One column each, (1, 0, −1) and (1, 1, −2): the squared correlation, 3² / (2 · 6)."""
    a, b = torch.tensor([[1.0], [0.0], [-1.0]]), torch.tensor([[1.0], [1.0], [-2.0]])
    assert linear_cka(a, b).item() == pytest.approx(9 / 12)


@CKA
def test_cka_ignores_rotation_scale_and_shift(
    cka: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator
) -> None:
    a, b = torch.randn(2, 3, 20, 6, generator=generator, dtype=torch.float64)
    moved = 1e-120 * (a @ _orthogonal(6, generator) + 2)
    torch.testing.assert_close(cka(a, a), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(cka(a, moved), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(cka(moved, b), cka(a, b))


def test_cosine_of_a_permuted_copy(generator: torch.Generator) -> None:
    a = torch.randn(2, 3, 20, 6, generator=generator)
    copy = a[..., torch.randperm(6, generator=generator)] * torch.tensor([-1.0, 2.0, -3.0, 1e-30, 1.0, 1e30])
    torch.testing.assert_close(best_assignment_cosine(a, copy), torch.ones(2, 3, dtype=torch.float64))


def test_cosine_by_hand() -> None:
    """Greedy pairing would take 0.8 and leave 0; the best takes 0.6 twice. A third column goes unpaired."""
    a = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    b = torch.tensor([[0.8, 0.6], [0.0, 0.8], [-0.6, 0.0], [0.0, 0.0]])
    assert best_assignment_cosine(a, b).item() == pytest.approx(0.6)
    unpaired = torch.cat([b, torch.tensor([[0.0], [0.0], [0.0], [1.0]])], -1)
    assert best_assignment_cosine(a, unpaired).item() == pytest.approx(0.6)


def test_nothing_aligns_with_zeros(generator: torch.Generator) -> None:
    a = torch.randn(9, 4, generator=generator)
    result = alignment(a, torch.zeros(9, 4), 10, generator)
    for measure in result.values():
        assert measure.value == 0
        assert measure.p_value == 1


def test_random_values_lie_within_their_null(generator: torch.Generator) -> None:
    """Unrelated values are far from 0 in every measure, and as far when permuted; p is uniform on 1/20 … 20/20."""
    a, b = torch.randn(2, 300, 12, 5, generator=generator)
    result = alignment(a, b, 19, generator)
    assert list(result) == list(PUBLISHED)
    for measure in result.values():
        assert measure.value.shape == (300,)
        assert measure.null_mean.mean() > 0.2
        assert measure.value.mean().item() == pytest.approx(measure.null_mean.mean().item(), abs=0.01)
        assert measure.p_value.mean().item() == pytest.approx(21 / 40, abs=0.05)
        assert (measure.p_value <= 0.05).double().mean().item() == pytest.approx(0.05, abs=0.035)
        assert (measure.value > measure.null_high).double().mean() < 0.15


def test_related_values_lie_beyond_their_null(generator: torch.Generator) -> None:
    a, noise = torch.randn(2, 2, 3, 20, 5, generator=generator)
    result = alignment(a, a + 0.3 * noise, 39, generator)
    for measure in result.values():
        assert (measure.value > measure.null_high).all()
        torch.testing.assert_close(measure.p_value, torch.full((2, 3), 1 / 40))


def test_values_are_the_measures_and_the_null_a_permutation(generator: torch.Generator) -> None:
    """With three tokens there are six orders, so the null is a mixture of the six values by hand."""
    a, b = torch.randn(2, 3, 2, generator=generator, dtype=torch.float64)
    result = alignment(a, b, 500, generator)
    functions = {"cosine": best_assignment_cosine, "linear_cka": linear_cka, "kernel_cka": kernel_cka}
    orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    for name, function in functions.items():
        torch.testing.assert_close(result[name].value, function(a, b))
        values = torch.stack([function(a, b[order]) for order in orders])
        assert result[name].null_mean.item() == pytest.approx(values.mean().item(), abs=0.05)
        assert result[name].null_high.item() == pytest.approx(values.max().item(), rel=1e-9)
