"""Time and memory of one more token, as the context before it grows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from kattn_cli.costs.memory import MIB, bounded_memory, peak_memory
from kattn_cli.errors import is_out_of_memory
from kattn_cli.statistics.intervals import median_interval

FED_AT_ONCE = 2048
"""Tokens of a context that a mechanism is given at a time."""
TURN_SECONDS = 0.002
LEAST_ROUNDS = 9
DRIFT = 32
"""A context may grow by one part in this many while tokens behind it are timed."""


@dataclass(frozen=True)
class TokenCost:
    """What one token behind a context costs: median, quartiles and their distance over rounds, and memory.

    ``ratio``: the median over rounds of its time to that behind the shortest context in the same round, with the 95 %
    interval of a median by order statistics; nan where the rounds are too few. ``state_mib``: what the mechanism
    remembers; a cache with room to grow holds up to twice as much. ``peak_mib``: of one step, above what is held.
    """

    milliseconds: float
    milliseconds_low: float
    milliseconds_high: float
    spread: float
    ratio: float
    ratio_low: float
    ratio_high: float
    rounds: int
    state_mib: float
    peak_mib: float


class Generation:
    """A program each of whose calls decodes one more token behind a context of ``context`` tokens."""

    def __init__(self, module: Any, state: Any, token: Tensor, context: int) -> None:
        self.module, self.state, self.token, self.context = module, state, token, context
        self.start, self._beyond = state, 0

    def __call__(self) -> None:
        _, self.state = self.module.decode(self.token, self.state)
        self._beyond += 1

    def rewind(self) -> None:
        """Begin at the context again where the tokens since then exceed what :data:`DRIFT` allows."""
        if self._beyond * DRIFT > self.context:
            self.state, self._beyond = self.start, 0
            self()


def feed(module: Any, contexts: Sequence[int], dim: int, batch: int) -> Iterator[tuple[int, Any]]:
    """Yield the state of a causal mechanism behind each context of random tokens, shortest first.

    A context is fed in blocks of :data:`FED_AT_ONCE`. Softmax attention is only shown it (``remember``): its keys and
    values are cached, and the outputs, whose cost is quadratic and which nobody reads, are not computed.
    """
    like, state, fed = next(module.parameters()), None, 0
    for context in sorted(contexts):
        for size in _blocks(context - fed):
            tokens = torch.randn(batch, size, dim, dtype=like.dtype, device=like.device)
            state = module.remember(tokens, state) if hasattr(module, "remember") else module.decode(tokens, state)[1]
        fed = context
        yield context, state


def decoding_costs(
    module: nn.Module, contexts: Sequence[int], *, dim: int, batch: int, seconds: float, limit: int | None = None
) -> dict[int, TokenCost]:
    """Return what a token costs behind each context, without those that do not fit in memory and longer ones.

    The contexts take turns: in each round every one is timed for about :data:`TURN_SECONDS`, so that what slows a
    machine for a while slows them all, and a difference of a few per cent shows.

    Args:
        module: causal, with ``decode``; on the device and in the precision that are measured.
        seconds: how long the rounds last for each context; there are at least :data:`LEAST_ROUNDS`.
        limit: bytes that may be taken on a CPU; by default what is free.
    """
    like = next(module.parameters())
    token = torch.randn(batch, 1, dim, dtype=like.dtype, device=like.device)
    generations: dict[int, Generation] = {}
    peaks: dict[int, float] = {}
    with torch.inference_mode(), bounded_memory(like.device, limit):
        try:
            for context, state in feed(module, contexts, dim, batch):
                generation = Generation(module, state, token, context)
                generation()
                peaks[context] = peak_memory(generation, like.device)
                generations[context] = generation
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        return _in_turns(generations, peaks, seconds * len(generations))


def state_mib(state: object) -> float:
    """Return the MiB of the tensors of a state, however it is nested."""
    if isinstance(state, Tensor):
        return state.numel() * state.element_size() / MIB
    if isinstance(state, Mapping):
        state = list(state.values())
    return sum(state_mib(part) for part in state) if isinstance(state, list | tuple) else 0.0


def _blocks(tokens: int) -> list[int]:
    whole, rest = divmod(tokens, FED_AT_ONCE)
    return [FED_AT_ONCE] * whole + [rest] * (rest > 0)


def _in_turns(generations: dict[int, Generation], peaks: dict[int, float], seconds: float) -> dict[int, TokenCost]:
    timers = {
        context: Timer("token()", globals={"token": one}, num_threads=torch.get_num_threads())
        for context, one in generations.items()
    }
    calls = {
        context: max(1, min(round(TURN_SECONDS / timer.timeit(2).mean), context // DRIFT))
        for context, timer in timers.items()
    }
    taken: dict[int, list[float]] = {context: [] for context in timers}
    started = time.perf_counter()
    for number in count():
        if number >= LEAST_ROUNDS and time.perf_counter() - started >= seconds:
            break
        for context in list(timers) if number % 2 else reversed(list(timers)):
            generations[context].rewind()
            taken[context].append(1e3 * timers[context].timeit(calls[context]).mean)
    return {context: _cost(taken, context, generations[context], peaks[context]) for context in timers}


def _cost(taken: dict[int, list[float]], context: int, generation: Generation, peak: float) -> TokenCost:
    ratios = [one / shortest for one, shortest in zip(taken[context], taken[min(taken)], strict=True)]
    ratio, low, high = median_interval(ratios)
    first, third = np.percentile(taken[context], [25, 75])
    return TokenCost(
        milliseconds=statistics.median(taken[context]),
        milliseconds_low=float(first),
        milliseconds_high=float(third),
        spread=float(third - first),
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        rounds=len(ratios),
        state_mib=state_mib(generation.start),
        peak_mib=peak,
    )
