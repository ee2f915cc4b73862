"""Time of a call, and of several programs in turns, so that what slows a machine for a while slows them all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch.utils.benchmark import Measurement, Timer

from kattn_cli.costs.memory import bounded_memory, peak_memory
from kattn_cli.device import synchronise
from kattn_cli.errors import is_out_of_memory

Pass = Literal["forward", "forward+backward"]
Program = Callable[[], object]
Times = dict[str, list[float]]
"""Milliseconds a call of each program, one a round."""
REPEATS = 3
"""How often a call is timed at least, however long it takes."""


@dataclass(frozen=True)
class Cost:
    """What a call costs: median and interquartile range of its time over ``repeats``, and the peak memory of one."""

    milliseconds: float
    spread: float
    repeats: int
    peak_mib: float


class OutOfMemory(Exception):
    """The device could not hold what the call needs."""


class TooSlow(Exception):
    """The first call took longer than was allowed."""


def measure(
    module: nn.Module,
    x: Any,
    what: Pass,
    seconds: float,
    limit: int | None = None,
    longest: float | None = None,
    device: torch.device | None = None,
) -> Cost:
    """Return what ``module(x)`` costs, called for at least ``seconds`` and at least :data:`REPEATS` times.

    A GPU has finished before a time is taken. Peak memory is what a call takes above the module and ``x``. Calls of a
    few microseconds are timed in blocks, and a repeat is then a block.

    Args:
        limit: bytes a call may take on a CPU; by default what is free.
        longest: seconds that the first call may take, which is not interrupted.
        device: of ``x``, where that is no tensor, which a forward pass does not need it to be.

    Raises:
        OutOfMemory: if the device refuses the memory, or the call needs more than ``limit`` bytes.
        TooSlow: if the first call takes longer than ``longest``.
    """
    call, took, device = _call(module, x, what), list[float](), device or x.device

    def clocked() -> None:
        started = time.perf_counter()
        call()
        synchronise(device)
        took.append(time.perf_counter() - started)

    try:
        with bounded_memory(device, limit):
            clocked()
            if longest is not None and took[0] > longest:
                raise TooSlow
            peak = peak_memory(clocked, device)
            timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
            # a little less than REPEATS calls take, lest one that is quicker than the first make it a call more
            timings = [timer.blocked_autorange(min_run_time=max(seconds, (REPEATS - 0.5) * took[1]))]
            while sum(len(one.times) for one in timings) < REPEATS:
                timings.append(timer.blocked_autorange(min_run_time=seconds))
            (timing,) = Measurement.merge(timings)
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory from None
        raise
    return Cost(1e3 * timing.median, 1e3 * timing.iqr, len(timing.times), peak)


def _call(module: nn.Module, x: Any, what: Pass) -> Callable[[], object]:
    if what == "forward":

        @torch.no_grad()
        def forward() -> object:
            return module(x)

        return forward

    cotangent = torch.ones_like(x)

    def forward_backward() -> None:
        inputs = x.detach().requires_grad_()
        torch.autograd.grad(module(inputs), [inputs, *module.parameters()], cotangent, allow_unused=True)

    return forward_backward


def in_turns(
    programs: Mapping[str, Program],
    device: torch.device,
    *,
    rounds: int,
    seconds: float,
    on_turn: Callable[[str], None] = lambda name: None,
) -> Times:
    """Return the milliseconds a call of each program in each of ``rounds`` rounds.

    In a round each program is called for about ``seconds``; the order turns round from one to the next. Before, every
    program is called three times: for what is compiled or allocated once, and to see how long it takes.
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
    """Return the mean seconds of a call, counted until a GPU has finished."""
    synchronise(device)
    started = time.perf_counter()
    for _ in range(calls):
        program()
    synchronise(device)
    return (time.perf_counter() - started) / calls
