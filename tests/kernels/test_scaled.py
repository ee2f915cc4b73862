"""Scaled Attention's operator equals the equation with S in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kattn_cli.kernels.scaled import (
    learned_scaled_values,
    learned_scaling,
    scaled_attention_naive,
    symmetric_scaled_values,
    symmetric_scaling,
)
from kattn_cli.kernels.softmax import softmax_attention

SIZES = [(2, 2, 1, 4), (2, 3, 7, 5), (2, 3, 63, 5)]


def compare(fast: Callable[..., Tensor], slow: Callable[..., Tensor], mask: Tensor | None, *inputs: Tensor) -> None:
    """Outputs at the tokens and the gradients of all inputs, in float64."""
    there = 1 if mask is None else mask[:, None, :, None]
    results = []
    for function in (fast, slow):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        out = function(*leaves, mask) * there
        cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
        results.append((out, *torch.autograd.grad(out, leaves, cotangent)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def mask_of(masked: bool, n: int) -> Tensor | None:
    """Two samples: one without padding, one with some in the middle and at the end."""
    if not masked:
        return None
    mask = torch.ones(2, n, dtype=torch.bool)
    mask[1, n // 3 : n // 2] = False
    mask[1, 2 * n // 3 + 1 :] = False
    return mask


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


each_size = pytest.mark.parametrize("size", SIZES)
each_form = pytest.mark.parametrize(("causal", "masked"), [(False, False), (False, True), (True, False), (True, True)])


@each_size
@each_form
def test_scalar(size: tuple[int, ...], causal: bool, masked: bool) -> None:
    def fast(q: Tensor, k: Tensor, v: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
        values = symmetric_scaled_values(k, v, alpha, causal=causal, mask=mask)
        return softmax_attention(q, k, values, causal=causal, mask=mask)

    def slow(q: Tensor, k: Tensor, v: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
        return scaled_attention_naive(q, k, v, symmetric_scaling(k, alpha, causal=causal, mask=mask), causal, mask)

    compare(fast, slow, mask_of(masked, size[2]), draw(*size), draw(*size), draw(*size), draw(1))


@each_size
@each_form
def test_matrix(size: tuple[int, ...], causal: bool, masked: bool) -> None:
    def fast(q: Tensor, k: Tensor, v: Tensor, s: Tensor, mask: Tensor | None) -> Tensor:
        values = learned_scaled_values(v, s, causal=causal, mask=mask)
        return softmax_attention(q, k, values, causal=causal, mask=mask)

    def slow(q: Tensor, k: Tensor, v: Tensor, s: Tensor, mask: Tensor | None) -> Tensor:
        scaling = learned_scaling(s, q.shape[-2], causal=causal, mask=mask)
        return scaled_attention_naive(q, k, v, scaling, causal, mask)

    longest = size[2] + 3
    s = draw(size[1], longest, longest)
    compare(fast, slow, mask_of(masked, size[2]), draw(*size), draw(*size), draw(*size), s)
