"""Block-sparse attention against an N × N mask, outputs and gradients, at odd sizes and with lists for each head."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.kernels.block_sparse import block_sparse_attention, block_sparse_attention_naive, window_blocks


def results(function: Any, inputs: list[Tensor], *arguments: Any, **options: Any) -> list[Tensor]:
    """The output and the gradients of all inputs."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    out = function(*leaves, *arguments, **options)
    cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
    return [out, *torch.autograd.grad(out, leaves, cotangent)]


@pytest.mark.parametrize("n", [1, 7, 63])
@pytest.mark.parametrize("size", [1, 4, 9])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("seeing_all", [0, 5])
@pytest.mark.parametrize("sees", [None, lambda query, key: (query - key) % 3 == 0], ids=["all", "every third"])
def test_equals_the_equation(n: int, size: int, masked: bool, seeing_all: int, sees: Any) -> None:
    inputs = [torch.randn(2, 3, n, 5, dtype=torch.float64) for _ in range(3)]
    rows = -(-n // size)
    blocks = torch.stack([window_blocks(rows, 1, 2, min(first, rows)).sort(-1).values for first in (2, 2, 2)])
    blocks[1] = blocks[1].where((blocks[1] == torch.arange(rows)[:, None]) | (blocks[1] % 2 == 0), -1)
    mask = torch.arange(n) < torch.tensor([[n], [n - n // 3]]) if masked else None
    options = {"sees": sees, "seeing_all": seeing_all, "mask": mask}
    found = results(block_sparse_attention, inputs, blocks, size, **options)
    expected = results(block_sparse_attention_naive, inputs, blocks, size, **options)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_window_blocks_by_hand() -> None:
    assert window_blocks(5, 1, 1, 2).tolist() == [
        [0, 1, -1, -1, -1],
        [0, 1, -1, -1, 2],
        [0, 1, -1, 2, 3],
        [0, 1, 2, 3, 4],
        [0, 1, 3, 4, -1],
    ]
