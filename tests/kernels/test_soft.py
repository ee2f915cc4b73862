"""SOFT's operator against the equation with the inverse itself, and its Newton iteration."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.kernels.soft import gaussian_kernel, newton_inverse, soft_attention, soft_attention_naive


@pytest.mark.parametrize("size", [(2, 2, 1, 4), (2, 3, 7, 5), (2, 3, 63, 5)])
@pytest.mark.parametrize("landmarks", [3, 8])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], landmarks: int, masked: bool) -> None:
    """Outputs at the tokens and the gradients of all inputs. A masked sample may have fewer tokens than landmarks."""
    torch.manual_seed(0)
    n = size[2]
    mask = torch.ones(2, n, dtype=torch.bool)
    if masked:
        mask = torch.stack([torch.arange(n) % 7 != 1, torch.arange(n) <= n // 9])
    inputs = [3 * torch.randn(size, dtype=torch.float64) for _ in range(2)]
    results = []
    for fast in (True, False):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        given = mask if masked else None
        if fast:
            out = soft_attention(*leaves, landmarks=landmarks, iterations=20, mask=given)
        else:
            out = soft_attention_naive(*leaves, landmarks=landmarks, mask=given)
        out = out * mask[:, None, :, None]
        cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
        results.append((out, *torch.autograd.grad(out, leaves, cotangent)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_newton_gives_the_inverse_and_its_gradient() -> None:
    torch.manual_seed(0)
    z = torch.randn(2, 3, 6, 4, dtype=torch.float64)
    results = []
    for inverse in (lambda a: newton_inverse(a, 20), torch.linalg.inv):
        a = gaussian_kernel(z, z).requires_grad_()
        out = inverse(a)
        cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
        results.append((out, *torch.autograd.grad(out, [a], cotangent)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


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
    torch.manual_seed(0)
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
