"""Memory and time that can be counted by hand, calls that are given up, and programs that take timing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kattn_cli.costs import timing
from kattn_cli.costs.memory import MIB, peak_memory
from kattn_cli.costs.timing import REPEATS, OutOfMemory, TooSlow, measure
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


class Calls(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x + 1


def test_measure_repeats_and_leaves_the_input_out() -> None:
    module = Calls()
    cost = measure(module, torch.ones(1, 1, MIB // 4), "forward", 0.001)
    assert cost.milliseconds > 0
    assert cost.repeats >= REPEATS
    assert module.count >= 2 + REPEATS
    assert cost.peak_mib == pytest.approx(1, abs=0.01), "the output alone"


def test_measure_of_a_backward_pass() -> None:
    x = torch.randn(1, 16, 64)
    forward, both = (measure(nn.Linear(64, 64), x, what, 0.001) for what in ("forward", "forward+backward"))
    assert both.peak_mib > forward.peak_mib


def test_a_call_that_takes_too_long_is_the_last() -> None:
    module = Calls()
    with pytest.raises(TooSlow):
        measure(module, torch.ones(1, 1, 1), "forward", 0.01, longest=0.0)
    assert module.count == 1


def test_out_of_memory_is_told() -> None:
    class Greedy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(2**31).sum()

    with pytest.raises(OutOfMemory):
        measure(Greedy(), torch.ones(1, 1, 1), "forward", 0.01, limit=2**30)


class Clock:
    """Seconds that pass only when a program says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def perf_counter(self) -> float:
        return self.now

    def program(self, name: str, seconds: float) -> timing.Program:
        def run() -> None:
            self.calls.append(name)
            self.now += seconds

        return run


def test_in_turns_by_a_clock_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    programs = {"quick": clock.program("quick", 0.25), "slow": clock.program("slow", 1.0)}
    turns: list[str] = []
    times = timing.in_turns(programs, torch.device("cpu"), rounds=3, seconds=0.5, on_turn=turns.append)
    assert times == {"quick": [250.0] * 3, "slow": [1000.0] * 3}
    assert turns == ["slow", "quick", "quick", "slow", "slow", "quick"]
    assert clock.calls.count("slow") == 3 + 3
    assert clock.calls.count("quick") == 3 + 3 * 2
