"""Speeds measured in turns."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch

from kattn_cli.costs.throughput import Speeds, measure_speeds


def program(seconds: float, log: list[float]) -> Iterator[int]:
    while True:
        log.append(seconds)
        time.sleep(seconds)
        yield 10


def test_ratios_are_of_the_same_round() -> None:
    speeds = Speeds({"a": [10.0, 30.0, 40.0], "b": [20.0, 30.0, 20.0]})
    assert speeds.ratio("a", to="b") == (1.0, 0.5, 2.0)
    assert speeds.median("a") == 30


def test_programs_take_turns_in_changing_order_after_a_warm_up() -> None:
    log: list[float] = []
    rounds: list[int] = []
    programs = {"slow": program(0.004, log), "quick": program(0.002, log)}
    speeds = measure_speeds(programs, torch.device("cpu"), rounds=2, steps=3, on_round=rounds.append)
    quick_first, slow_first = [0.002] * 3 + [0.004] * 3, [0.004] * 3 + [0.002] * 3
    assert log == [*quick_first, *slow_first, *quick_first]
    assert rounds == [0, 1, 2]
    assert [len(found) for found in speeds.rounds.values()] == [2, 2]
    assert speeds.median("slow") == pytest.approx(10 / 0.004, rel=0.9)
    assert speeds.median("slow") <= 10 / 0.004
