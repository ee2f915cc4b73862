"""Linformer's operator against its equation, head by head."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.kernels.linformer import linformer_attention, linformer_attention_naive


@pytest.mark.parametrize("size", [(2, 2, 1, 4), (2, 3, 7, 5), (2, 3, 63, 5)])
@pytest.mark.parametrize("heads_share", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], heads_share: bool, masked: bool) -> None:
    """Outputs at the tokens and the gradients of all inputs; the projections are wider than the sequence."""
    torch.manual_seed(0)
    n = size[2]
    mask = torch.arange(n) < torch.tensor([[n], [n // 2 + 1]]) if masked else torch.ones(2, n, dtype=torch.bool)
    projection = (1 if heads_share else size[1], 4, n + 2)
    inputs = [torch.randn(shape, dtype=torch.float64) for shape in (size, size, size, projection, projection)]
    results = []
    for function in (linformer_attention, linformer_attention_naive):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        out = function(*leaves, mask=mask if masked else None) * mask[:, None, :, None]
        cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
        results.append((out, *torch.autograd.grad(out, leaves, cotangent)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
