"""Time of several programs measured in turns, so that what slows a machine for a while slows them all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import torch

from kattn_cli.device import synchronise

Program = Callable[[], object]
Times = dict[str, list[float]]
"""Milliseconds a call of each program, one a round."""


def in_turns(
    programs: Mapping[str, Program],
    device: torch.device,
    *,
    rounds: int,
    seconds: float,
    on_turn: Callable[[str], None] = lambda name: None,
) -> Times:
    """``rounds`` rounds, forwards and backwards, in which each program is called for about ``seconds``.

    Every program is called three times before: for what is compiled or allocated once, and to see how long it takes.
    """
    calls = {name: _calls(program, device, seconds) for name, program in programs.items()}
    times: Times = {name: [] for name in programs}
    for number in range(rounds):
        for name in list(programs) if number % 2 else list(programs)[::-1]:
            on_turn(name)
            times[name].append(1e3 * _seconds(programs[name], device, calls[name]))
    return times


def _calls(program: Program, device: torch.device, seconds: float) -> int:
    _seconds(program, device, 1)
    once = min(_seconds(program, device, 1) for _ in range(2))
    return max(1, math.ceil(seconds / once))


def _seconds(program: Program, device: torch.device, calls: int) -> float:
    """A call, on average."""
    synchronise(device)
    started = time.perf_counter()
    for _ in range(calls):
        program()
    synchronise(device)
    return (time.perf_counter() - started) / calls
