"""What one call of a mechanism costs: time, memory, operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.utils.benchmark import Timer
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.analysis.memory import bounded_memory, peak_memory

Pass = Literal["forward", "forward+backward"]
PASSES: tuple[Pass, ...] = ("forward", "forward+backward")


@dataclass(frozen=True)
class Cost:
    """Median and interquartile range of repeated calls, and the peak memory of one."""

    milliseconds: float
    spread: float
    peak_mib: float


class OutOfMemory(Exception):
    """The device could not hold what the call needs."""


def measure(module: nn.Module, x: torch.Tensor, what: Pass, seconds: float, limit: int | None = None) -> Cost:
    """The cost of ``module(x)``; calls are repeated for at least ``seconds``.

    Raises:
        OutOfMemory: if the device refuses the memory, or the call needs more than ``limit`` bytes.
    """
    call = _call(module, x, what)
    try:
        with bounded_memory(x.device, limit):
            call()
            peak = peak_memory(call, x.device)
            timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
            timing = timer.blocked_autorange(min_run_time=seconds)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            raise OutOfMemory from None
        raise
    return Cost(1e3 * timing.median, 1e3 * timing.iqr, peak)


def _call(module: nn.Module, x: torch.Tensor, what: Pass) -> Callable[[], object]:
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


def forward_flops(module: nn.Module, n: int, dim: int) -> tuple[int, str]:
    """Operations of a forward pass for one sample of ``n`` tokens, and how they were counted.

    By the mechanism's own ``flops(n)`` (``formula``); else by torch's counter, which sees matrix products only.
    """
    if hasattr(module, "flops"):
        return int(module.flops(n)), "formula"  # type: ignore[operator]
    like = next(module.parameters(), torch.zeros(()))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(torch.zeros(1, n, dim, device=like.device, dtype=like.dtype))
    return int(counter.get_total_flops()), "matrix products only"
