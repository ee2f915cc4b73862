"""Programs take turns; what a call took is what the clock says, shared among a turn's calls."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.costs import turns


class Clock:
    """Seconds that pass only when a program says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def perf_counter(self) -> float:
        return self.now

    def program(self, name: str, seconds: float) -> turns.Program:
        def run() -> None:
            self.calls.append(name)
            self.now += seconds

        return run


def test_in_turns_by_a_clock_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(turns, "time", clock)
    programs = {"quick": clock.program("quick", 0.25), "slow": clock.program("slow", 1.0)}
    told: list[str] = []
    times = turns.in_turns(programs, torch.device("cpu"), rounds=3, seconds=0.5, on_turn=told.append)
    assert times == {"quick": [250.0] * 3, "slow": [1000.0] * 3}
    assert told == ["slow", "quick", "quick", "slow", "slow", "quick"]
    assert clock.calls.count("slow") == 3 + 3
    assert clock.calls.count("quick") == 3 + 3 * 2
