"""The least that a machine must do, by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.costs import roofline
from kattn_cli.costs.roofline import (
    Ceilings,
    Work,
    attention_work,
    causal_tssa_work,
    primal_work,
    projection_work,
    tssa_work,
)


def test_the_slower_of_memory_and_arithmetic_decides() -> None:
    ceilings = Ceilings(bandwidth=1e9, operations=1e12)
    assert Work(2e6).milliseconds(ceilings) == pytest.approx(2)
    assert Work(2e6, 5e9).milliseconds(ceilings) == pytest.approx(5)
    assert roofline.together(Work(1, 2), Work(3, 4)) == Work(4, 6)


def test_bytes_of_tssa_by_hand() -> None:
    """N = 10, C = 8 in float32: w three times each way, the gradient twice, the output and its own gradient once."""
    assert tssa_work(80, 4).bytes == 80 * 4 * (3 + 1 + 3 + 2 + 1)


def test_bytes_of_causal_tssa_by_hand() -> None:
    """N = 10, C = 8 in float32. A scan over w for Π and one for the output; backward, one each for Π and for w."""
    forward = {"w for energies and memberships": 1, "w for moments and the output": 1, "the output": 1}
    backward = {"w for the gradient of Π": 1, "grad": 1, "w for that of w": 1, "grad again": 1, "the gradient of w": 1}
    work = causal_tssa_work(80, 4)
    assert work == Work(80 * 4 * (sum(forward.values()) + sum(backward.values())), 0)
    assert work.bytes == 2560
    assert causal_tssa_work(160, 2) == work


def test_work_of_primal_scores_by_hand() -> None:
    """N = 10, C = 12, H = 3, s = 5 in float32: entries of q and k, 120 each, and of scores, 10 · 3 · (5 + 5) = 300."""
    forward = {"q": 120, "k": 120, "scores": 300}
    backward = {"q": 120, "k": 120, "scores": 300, "their gradient": 300, "of q": 120, "of k": 120}
    # Each of q and k, 3 heads of 10 × 4, times 4 × 5; backward, that of W and that of the vectors.
    products = 2 * 3 * (2 * 10 * 4 * 5)
    assert primal_work(10, 12, 3, 5, 4) == Work(4 * (sum(forward.values()) + sum(backward.values())), 3 * products)
    assert primal_work(10, 12, 3, 5, 4) == Work(6480, 7200)


def test_work_of_attention_and_projections_by_hand() -> None:
    """B = 2, N = 10, C = 12 in bfloat16: q, k, v and the output forward; backward those, and four gradients."""
    entries = 2 * 10 * 12
    assert attention_work(2, 10, 12, 2) == Work(2 * entries * (4 + 8), 7 * 2 * 2 * 10 * 10 * 12)
    # To 36 outputs: x read and y written; backward x, dx, y's gradient twice.
    assert projection_work(2, 10, 12, 36, 2) == Work(2 * 3 * (entries + 2 * 10 * 36), 3 * 2 * 20 * 12 * 36)


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


class Copies(TorchDispatchMode):
    """Notes the bytes that copies read and write."""

    moved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.copy_.default:
            self.moved += args[0].nbytes + args[1].nbytes
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_ceilings_are_what_is_moved_and_calculated_over_the_median_time(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that says 2, 9 and 4 ms a copy and 8, 1 and 5 ms a product; bytes and operations by torch's count."""
    monkeypatch.setattr(roofline, "COPIED", 2**16)
    monkeypatch.setattr(roofline, "PRODUCT", {"cpu": 32})
    counted: dict[str, float] = {}

    def in_turns(programs: Any, device: torch.device, *, rounds: int, seconds: float) -> dict[str, list[float]]:
        assert (rounds, seconds) == (3, 0.5)
        with Copies() as copies:
            programs["copy"]()
        with FlopCounterMode(display=False) as operations:
            programs["product"]()
        counted.update(copy=copies.moved, product=operations.get_total_flops())
        return {"copy": [2.0, 9.0, 4.0], "product": [8.0, 1.0, 5.0]}

    monkeypatch.setattr(roofline, "in_turns", in_turns)
    found = roofline.ceilings(torch.device("cpu"), dtype, 3, 0.5)
    assert counted == {"copy": 2 * 2**16, "product": 2 * 32**3}
    assert found == (pytest.approx(2 * 2**16 / 4e-3), pytest.approx(2 * 32**3 / 5e-3))


def test_ceilings_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "COPIED", 2**16)
    monkeypatch.setattr(roofline, "PRODUCT", {"cpu": 32})
    found = roofline.ceilings(torch.device("cpu"), torch.float32, 3, 1e-4)
    assert found.bandwidth > 0
    assert found.operations > 0
