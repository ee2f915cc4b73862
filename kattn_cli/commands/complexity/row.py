"""One row of ``kattn complexity``: a mechanism at one size, whatever comes of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from kattn_cli.attention import attention_class
from kattn_cli.attention.options import build_attention
from kattn_cli.attention.user_file import told
from kattn_cli.commands.complexity.grid import Competitor, Setting
from kattn_cli.costs.flops import Count, count_flops, count_without_running
from kattn_cli.costs.memory import bounded_memory
from kattn_cli.costs.timing import Cost, OutOfMemory, Pass, TooSlow, measure
from kattn_cli.errors import RecipeError
from kattn_cli.kernels.choice import operators
from kattn_cli.training.seed import Stream, seed_torch

OK, NOT_CAUSAL, FAILED, MEMORY, SLOW = "ok", "no causal form", "failed", "out of memory", "over "
SMALLER = " at a smaller size"


@dataclass(frozen=True)
class Bounds:
    """What a row may take: ``seconds`` of repeats at least, ``longest`` seconds a call, ``memory`` bytes on a CPU."""

    seconds: float
    longest: float
    memory: int | None = None


@dataclass(frozen=True)
class Outcome:
    """``status``: ``ok``, or why there is no ``cost``; ``counted`` is there also for a size that did not fit."""

    status: str
    counted: Count | None = None
    cost: Cost | None = None


def outcome(
    one: Competitor, setting: Setting, what: Pass, n: int, bounds: Bounds, device: torch.device, before: str = OK
) -> Outcome:
    """Count and measure; every error of the mechanism becomes a status. ``before``: that of the next smaller size."""
    name, options = one.mechanism.name, one.mechanism.options
    if setting.causal and not getattr(attention_class(name), "supports_causal", False):
        return Outcome(NOT_CAUSAL)
    build = partial(
        build_attention, name, options, dim=setting.dim, heads=setting.heads, seq_len=n, causal=setting.causal
    )
    counted = count_without_running(build, n, setting.dim)
    if before.startswith((MEMORY, SLOW)):
        return Outcome(before.removesuffix(SMALLER) + SMALLER, counted)
    try:
        module, x = _made(build, setting, n, device)
        with operators(one.version):
            cost = measure(module, x, what, bounds.seconds, bounds.memory, bounds.longest)
        return Outcome(OK, counted or _counted(module, n, setting.dim, device, bounds.memory), cost)
    except (OutOfMemory, MemoryError, torch.OutOfMemoryError):
        return Outcome(MEMORY, counted)
    except TooSlow:
        return Outcome(f"{SLOW}{bounds.longest:g} s a call", counted)
    except RecipeError as error:
        reason = str(error).removeprefix(f"attention {name}: ")
        return Outcome(f"{NOT_CAUSAL if setting.causal else FAILED}: {reason}", counted)
    except Exception as error:
        return Outcome(f"{FAILED}: {_first_line(told(error))}", counted)


def _made(build: Callable[[], nn.Module], setting: Setting, n: int, device: torch.device) -> tuple[nn.Module, Tensor]:
    seed_torch(0, Stream.COMPLEXITY, n)
    module = build().to(device, setting.dtype)
    return module, torch.randn(setting.batch, n, setting.dim, dtype=setting.dtype).to(device)


def _counted(module: nn.Module, n: int, dim: int, device: torch.device, memory: int | None) -> Count | None:
    """Of somebody's own mechanism that does not run without numbers."""
    with suppress(RuntimeError, MemoryError), bounded_memory(device, memory):
        return count_flops(module, n, dim)
    return None


def _first_line(text: str) -> str:
    """With the place at the end of an error's text, where the text has several lines."""
    first, *others = text.splitlines()
    return f"{first} … {text[text.rindex('(') :]}" if others else first
