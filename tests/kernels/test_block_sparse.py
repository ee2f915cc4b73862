"""Block-sparse attention against an N × N mask, outputs and gradients, at odd sizes and with lists for each head."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from against_naive import compare, draw, padding

from kattn_cli.kernels.block_sparse import block_sparse_attention, block_sparse_attention_naive, window_blocks


@pytest.mark.parametrize("n", [1, 7, 63])
@pytest.mark.parametrize("size", [1, 4, 9])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("seeing_all", [0, 5])
@pytest.mark.parametrize("sees", [None, lambda query, key: (query - key) % 3 == 0], ids=["all", "every third"])
def test_equals_the_equation(n: int, size: int, masked: bool, seeing_all: int, sees: Any) -> None:
    rows = -(-n // size)
    blocks = torch.stack([window_blocks(rows, 1, 2, min(first, rows)).sort(-1).values for first in (2, 2, 2)])
    blocks[1] = blocks[1].where((blocks[1] == torch.arange(rows)[:, None]) | (blocks[1] % 2 == 0), -1)
    listed = {"blocks": blocks, "size": size, "sees": sees, "seeing_all": seeing_all}
    compare(
        partial(block_sparse_attention, **listed),
        partial(block_sparse_attention_naive, **listed),
        *(draw(2, 3, n, 5) for _ in range(3)),
        mask=padding(n) if masked else None,
    )


def test_window_blocks_by_hand() -> None:
    assert window_blocks(5, 1, 1, 2).tolist() == [
        [0, 1, -1, -1, -1],
        [0, 1, -1, -1, 2],
        [0, 1, -1, 2, 3],
        [0, 1, 2, 3, 4],
        [0, 1, 3, 4, -1],
    ]
