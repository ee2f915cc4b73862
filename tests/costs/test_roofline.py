"""The least that a machine must do, by hand."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.costs import roofline
from kattn_cli.costs.roofline import Ceilings, Work, attention_work, primal_work, projection_work, tssa_work


def test_the_slower_of_memory_and_arithmetic_decides() -> None:
    ceilings = Ceilings(bandwidth=1e9, operations=1e12)
    assert Work(2e6).milliseconds(ceilings) == pytest.approx(2)
    assert Work(2e6, 5e9).milliseconds(ceilings) == pytest.approx(5)
    assert roofline.together(Work(1, 2), Work(3, 4)) == Work(4, 6)


def test_bytes_of_tssa_by_hand() -> None:
    """N = 10, C = 8 in float32: w three times each way, the gradient twice, the output and its own gradient once."""
    assert tssa_work(80, 4).bytes == 80 * 4 * (3 + 1 + 3 + 2 + 1)


def test_operations_are_those_that_torch_counts() -> None:
    q, k, v = (torch.randn(2, 3, 10, 4, requires_grad=True) for _ in range(3))
    linear = torch.nn.Linear(12, 24, bias=False)
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()
    fused = attention_work(2, 10, 12, 4).operations
    assert counter.get_total_flops() <= fused == 7 * 2 * 2 * 10**2 * 12
    with FlopCounterMode(display=False) as counter:
        linear(torch.randn(2, 10, 12, requires_grad=True)).sum().backward()
    assert counter.get_total_flops() == projection_work(2, 10, 12, 24, 4).operations
    q, w = torch.randn(1, 3, 10, 4, requires_grad=True), torch.randn(3, 4, 5, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        (q @ w).sum().backward()
    assert 2 * counter.get_total_flops() == primal_work(10, 12, 3, 5, 4).operations


def test_ceilings_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "COPIED", 2**16)
    monkeypatch.setattr(roofline, "PRODUCT", {"cpu": 32})
    found = roofline.ceilings(torch.device("cpu"), torch.float32, 3, 1e-4)
    assert found.bandwidth > 0
    assert found.operations > 0
