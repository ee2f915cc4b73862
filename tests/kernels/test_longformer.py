"""Sliding-window attention against a banded N × N mask, outputs and gradients; and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.kernels.longformer import sliding_window_attention, sliding_window_attention_naive


def results(function: Any, inputs: list[Tensor], *arguments: Any, **options: Any) -> list[Tensor]:
    """The output and the gradients of all inputs."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    out = function(*leaves, *arguments, **options)
    cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
    return [out, *torch.autograd.grad(out, leaves, cotangent)]


@pytest.mark.parametrize("n", [1, 7, 63])
@pytest.mark.parametrize("window", [2, 6, 20, 200])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"global_keys": 5}], ids=str)
def test_equals_the_equation(n: int, window: int, masked: bool, options: dict[str, Any]) -> None:
    inputs = [torch.randn(2, 3, n, 5, dtype=torch.float64) for _ in range(3)]
    mask = torch.arange(n) < torch.tensor([[n], [n - n // 3]]) if masked else None
    found = results(sliding_window_attention, inputs, window, mask=mask, **options)
    expected = results(sliding_window_attention_naive, inputs, window, mask=mask, **options)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_cost_grows_with_n() -> None:
    counts = []
    for n in (512, 1024):
        q = k = v = torch.zeros(1, 2, n, 4, device="meta")
        with FlopCounterMode(display=False) as counter:
            sliding_window_attention(q, k, v, 32, global_keys=3)
        counts.append(counter.get_total_flops())
    assert 0 < counts[1] == 2 * counts[0]
