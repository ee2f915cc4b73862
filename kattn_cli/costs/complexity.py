"""What one call of a mechanism costs: time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch.utils.benchmark import Measurement, Timer

from kattn_cli.costs.memory import bounded_memory, is_out_of_memory, peak_memory
from kattn_cli.device import synchronise

Pass = Literal["forward", "forward+backward"]
PASSES: tuple[Pass, ...] = ("forward", "forward+backward")
REPEATS = 3
"""As often a call is timed at least, however long it takes."""


@dataclass(frozen=True)
class Cost:
    """Median and interquartile range over ``repeats`` of a call, and the peak memory of one."""

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
    """The cost of ``module(x)``; calls are repeated for at least ``seconds``, and at least :data:`REPEATS` times.

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
