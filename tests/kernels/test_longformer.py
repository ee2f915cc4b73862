"""Sliding-window attention against a banded N × N mask, outputs and gradients; and what it costs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from against_naive import compare, draw, padding
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.kernels.longformer import sliding_window_attention, sliding_window_attention_naive


@pytest.mark.parametrize("n", [1, 7, 63])
@pytest.mark.parametrize("window", [2, 6, 20, 200])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"global_keys": 5}], ids=str)
def test_equals_the_equation(n: int, window: int, masked: bool, options: dict[str, Any]) -> None:
    compare(
        partial(sliding_window_attention, window=window, **options),
        partial(sliding_window_attention_naive, window=window, **options),
        *(draw(2, 3, n, 5) for _ in range(3)),
        mask=padding(n) if masked else None,
    )


def test_cost_grows_with_n() -> None:
    counts = []
    for n in (512, 1024):
        q = k = v = torch.zeros(1, 2, n, 4, device="meta")
        with FlopCounterMode(display=False) as counter:
            sliding_window_attention(q, k, v, 32, global_keys=3)
        counts.append(counter.get_total_flops())
    assert 0 < counts[1] == 2 * counts[0]
