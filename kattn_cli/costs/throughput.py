"""Training speed of several programs, measured in turns, so that what slows a machine for a while slows them all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from kattn_cli.device import synchronise

Steps = Iterator[int]
"""Each ``next`` trains one step and says how many images it saw."""


@dataclass(frozen=True)
class Speeds:
    """Images a second of each program in each round, ``{name: [one a round]}``."""

    rounds: dict[str, list[float]]

    def median(self, name: str) -> float:
        """The median over rounds."""
        return statistics.median(self.rounds[name])

    def ratio(self, name: str, to: str) -> tuple[float, float, float]:
        """Median, least and greatest of the ratios of the two in one round each."""
        ratios = [one / other for one, other in zip(self.rounds[name], self.rounds[to], strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)


def measure_speeds(
    programs: Mapping[str, Steps],
    device: torch.device,
    *,
    rounds: int,
    steps: int,
    on_round: Callable[[int], None],
) -> Speeds:
    """``rounds`` rounds of ``steps`` steps of each program, after a round that does not count."""
    speeds: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        order = list(programs) if number % 2 else list(programs)[::-1]
        for name in order:
            speed = _images_per_second(programs[name], device, steps)
            if number:
                speeds[name].append(speed)
        on_round(number)
    return Speeds(speeds)


def _images_per_second(program: Steps, device: torch.device, steps: int) -> float:
    synchronise(device)
    started = time.perf_counter()
    images = sum(next(program) for _ in range(steps))
    synchronise(device)
    return images / (time.perf_counter() - started)
