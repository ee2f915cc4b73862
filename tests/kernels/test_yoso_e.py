"""YOSO-E's operator equals the sum token by token; its two gradients are what they are said to be."""

from __future__ import annotations

import math

import pytest
import torch
from against_naive import compare, draw, padding
from torch import Tensor

from kattn_cli.kernels import yoso_e
from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.yoso_e import Gradient, collision_probability, yoso, yoso_matrix, yoso_naive


@pytest.mark.parametrize("size", [(2, 2, 1, 4), (2, 3, 7, 5), (2, 2, 16, 5)])
@pytest.mark.parametrize("gradient", ["exact", "lower-bound"])
@pytest.mark.parametrize("masked", [False, True])
def test_yoso(size: tuple[int, ...], gradient: Gradient, masked: bool) -> None:
    compare(
        lambda q, k, v, mask: yoso(q, k, v, 8, gradient, mask),
        lambda q, k, v, mask: yoso_naive(q, k, v, 8, gradient, mask),
        *(draw(*size) for _ in range(3)),
        mask=padding(size[2]) if masked else None,
    )


def test_is_the_rate_of_collisions() -> None:
    """Of 200,000 hashes of three random hyperplanes each, to four standard deviations."""
    q, k, planes = draw(1, 1, 1, 4), draw(1, 1, 1, 4), draw(200_000, 3, 4)
    collide = ((planes @ q[0, 0, 0] > 0) == (planes @ k[0, 0, 0] > 0)).all(-1).double()
    expected = yoso_matrix(q, k, 3)[0, 0, 0, 0]
    assert 0.05 < expected < 0.95
    assert abs(collide.mean() - expected) < 4 * (expected * (1 - expected) / 200_000).sqrt()


def test_exact_gradient_is_the_derivative() -> None:
    cosines = torch.linspace(-0.9, 0.9, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: collision_probability(x, 8), cosines)


def test_lower_bound_is_one() -> None:
    """Nowhere above the derivative, and near it where the angle makes (π − θ) sin θ the most, 1.82 of 2."""
    angles = torch.linspace(1e-3, math.pi - 1e-3, 1000, dtype=torch.float64)
    gradients: list[Gradient] = ["exact", "lower-bound"]
    slopes = []
    for gradient in gradients:
        q = torch.stack((angles.cos(), angles.sin()), -1).requires_grad_()
        weights = yoso_matrix(q, torch.tensor([[1.0, 0.0]], dtype=torch.float64), 8, gradient)
        slopes.append(torch.autograd.grad(weights.sum(), q)[0].norm(dim=-1))
    ratio = slopes[1] / slopes[0]
    torch.testing.assert_close(ratio, (math.pi - angles) * angles.sin() / 2, rtol=1e-9, atol=1e-9)
    assert 0.9 < ratio.max() < 1


@pytest.mark.parametrize("gradient", ["exact", "lower-bound"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sign", [1, -1])
def test_finite_where_a_query_meets_its_key(gradient: Gradient, dtype: torch.dtype, sign: int) -> None:
    q, v = draw(1, 2, 5, 4).to(dtype).requires_grad_(), draw(1, 2, 5, 4).to(dtype)
    out = yoso(q, sign * q, v, 8, gradient)
    (grad,) = torch.autograd.grad((out * v.square()).sum(), q)
    assert out.isfinite().all()
    assert grad.isfinite().all()
    assert grad.abs().max() < 100


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yoso_e, "BLOCK", 3)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [(2, 3, 7, 5), (2, 2, 16, 5)])
@pytest.mark.parametrize("gradient", ["exact", "lower-bound"])
@pytest.mark.parametrize("masked", [False, True])
def test_in_blocks(size: tuple[int, ...], gradient: Gradient, masked: bool) -> None:
    compare(
        lambda q, k, v, mask: yoso(q, k, v, 8, gradient, mask),
        lambda q, k, v, mask: yoso_naive(q, k, v, 8, gradient, mask),
        *(draw(*size) for _ in range(3)),
        mask=padding(size[2]) if masked else None,
    )


def test_thousands_of_tokens() -> None:
    """4,097 of them in 17 blocks, and in one."""

    def at_once(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        with operators("slow"):
            return yoso(q, k, v, 8, "lower-bound")

    inputs = [draw(1, 1, 4097, 2) for _ in range(3)]
    compare(lambda q, k, v, mask: yoso(q, k, v, 8, "lower-bound"), at_once, *inputs, mask=None)


def test_keeps_no_matrix_of_tokens_by_tokens() -> None:
    sizes = {}
    for version in ("fast", "slow"):
        kept: list[int] = []

        def note(z: Tensor, kept: list[int] = kept) -> Tensor:
            kept.append(z.numel())
            return z

        q, k, v = (draw(1, 2, 700, 4).requires_grad_() for _ in range(3))
        with operators(version), torch.autograd.graph.saved_tensors_hooks(note, lambda z: z):
            yoso(q, k, v, 8)
        sizes[version] = max(kept)
    assert sizes == {"fast": 700 * 2 * 4, "slow": 700 * 2 * 700}


@pytest.mark.usefixtures("small_blocks")
def test_compiles_into_one_graph() -> None:
    compiled = torch.compile(yoso, fullgraph=True, backend="aot_eager")
    inputs = [draw(2, 3, 7, 5) for _ in range(3)]
    compare(lambda q, k, v, mask: compiled(q, k, v, 8), lambda q, k, v, mask: yoso(q, k, v, 8), *inputs, mask=None)


@pytest.mark.usefixtures("small_blocks")
def test_on_the_meta_device() -> None:
    q = torch.empty(2, 3, 7, 5, device="meta", requires_grad=True)
    (grad,) = torch.autograd.grad(yoso(q, q, q, 8).sum(), q)
    assert grad.shape == q.shape
