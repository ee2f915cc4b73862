"""Costs: memory and operations that can be counted by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.analysis.complexity import OutOfMemory, forward_flops, measure
from kattn_cli.analysis.memory import MIB, peak_memory
from kattn_cli.attention import ATTENTIONS
from kattn_cli.attention.options import build_attention
from kattn_cli.kernels.softmax import softmax_matrix

CPU = torch.device("cpu")


def test_peak_memory_of_known_allocations() -> None:
    x = torch.ones(MIB // 4)
    assert peak_memory(lambda: x + 1, CPU) == pytest.approx(1, abs=0.01)
    assert peak_memory(lambda: (x + 1) * 2, CPU) == pytest.approx(2, abs=0.01)
    assert peak_memory(lambda: [x + 1, x + 2, x + 3], CPU) == pytest.approx(3, abs=0.01)


def test_peak_memory_sees_the_attention_matrix() -> None:
    q = torch.randn(1, 1, 1024, 8)
    assert peak_memory(lambda: softmax_matrix(q, q), CPU) > 2 * 4 * 1024**2 / MIB


def test_measure_counts_time_and_memory() -> None:
    cost = measure(nn.Linear(64, 64), torch.randn(1, 16, 64), "forward+backward", 0.02)
    assert cost.milliseconds > 0
    assert cost.peak_mib > 0


def test_out_of_memory_is_told() -> None:
    class Greedy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(2**31).sum()

    with pytest.raises(OutOfMemory):
        measure(Greedy(), torch.ones(1, 1, 1), "forward", 0.01, limit=2**30)


@pytest.mark.parametrize(
    ("name", "options", "products"),
    [
        ("softmax", {}, "2·(3+1)·NC² + 4·N²C"),
        ("symmetric", {}, "2·(2+1)·NC² + 4·N²C"),
        ("rpc", {"iterations": 3}, "2·(2+1)·NC² + 3·4·N²C"),
    ],
)
def test_flops_by_hand(name: str, options: dict[str, int], products: str) -> None:
    """Matrix products as stated, and what else the formula counts: biases, scaling, softmax, the pursuit."""
    n, c, h = 10, 24, 3
    terms = {"softmax": (4, 1, 0), "symmetric": (3, 1, 0), "rpc": (3, 3, 1)}
    maps, attentions, pursuit = terms[name]
    expected = 2 * maps * n * c * c + attentions * 4 * n * n * c
    expected += maps * n * c + attentions * 6 * h * n * n + pursuit * (2 * n * c + 3 * 11 * n * c)
    module = build_attention(name, options, dim=c, heads=h, seq_len=n)
    assert forward_flops(module, n, c) == (expected, "formula"), products


@pytest.mark.parametrize("name", ATTENTIONS)
def test_formula_covers_what_torch_counts(name: str) -> None:
    """torch's counter sees matrix products only; the formula is never below it, and near it where they dominate."""
    n, c = 64, 96
    module = build_attention(name, {}, dim=c, heads=3, seq_len=n)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        module(torch.zeros(1, n, c))
    counted = counter.get_total_flops()
    assert counted <= forward_flops(module, n, c)[0] <= 1.25 * counted


def test_flops_of_a_stranger() -> None:
    assert forward_flops(nn.Linear(8, 8), 5, 8) == (2 * 5 * 64, "matrix products only")
