"""SOFT's operator against the equation with the inverse itself, and its Newton iteration."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from against_naive import SIZES, compare, draw, few_tokens

from kattn_cli.kernels.soft import gaussian_kernel, newton_inverse, soft_attention, soft_attention_naive


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("landmarks", [3, 8])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], landmarks: int, masked: bool) -> None:
    compare(
        partial(soft_attention, landmarks=landmarks, iterations=20),
        partial(soft_attention_naive, landmarks=landmarks),
        3 * draw(*size),
        3 * draw(*size),
        mask=few_tokens(size[2]) if masked else None,
    )


def test_newton_gives_the_inverse_and_its_gradient() -> None:
    z = draw(2, 3, 6, 4)
    compare(
        lambda a, mask: newton_inverse(a, 20),
        lambda a, mask: torch.linalg.inv(a),
        gaussian_kernel(z, z),
        mask=None,
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_newton_on_equal_landmarks(dtype: torch.dtype) -> None:
    """The inverse of a matrix of ones is that matrix over m²."""
    ones = torch.ones(1, 1, 49, 49, dtype=dtype)
    torch.testing.assert_close(newton_inverse(ones, 20), ones / 49**2)
    assert newton_inverse(ones[..., :1, :1], 20) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("iterations", [1, 20, 30])
def test_finite_and_near_float64(dtype: torch.dtype, spread: float, iterations: int) -> None:
    """Tokens equal, close and far apart, all far from 0; the second sample is all padding."""
    q = (30 + spread * torch.randn(2, 2, 300, 8)).to(dtype).requires_grad_()
    v = torch.randn(2, 2, 300, 8).to(dtype)
    mask = torch.tensor([[True], [False]]).expand(2, 300)
    out = soft_attention(q, v, landmarks=49, iterations=iterations, mask=mask)
    out.sum().backward()
    assert q.grad is not None
    assert q.grad.isfinite().all()
    assert not out[1].any()
    exact = soft_attention(q.double(), v.double(), landmarks=49, iterations=iterations, mask=mask)
    error = (out.double() - exact).norm() / exact.norm().clamp(min=1)
    assert error < (1e-2 if iterations == 30 or dtype == torch.bfloat16 else 1e-4)
