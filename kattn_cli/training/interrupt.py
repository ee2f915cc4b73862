"""Ctrl-C that lets the step in hand finish."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether, and by which signal, the user asked to stop."""

    signal: int | None = None


@contextmanager
def catch_interruption() -> Iterator[Interruption]:
    """While inside, SIGINT and SIGTERM set a flag; a second one acts as it always does."""
    interruption = Interruption()
    before = {}

    def note(number: int, frame: FrameType | None) -> None:
        interruption.signal = number
        for known, handler in before.items():
            signal.signal(known, handler)

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, note)
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
