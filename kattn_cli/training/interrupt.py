"""Stopping a training by Ctrl-C once the step in hand is finished."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interruption:
    """Whether, and by which signal, the user asked to stop."""

    signal: int | None = None


@contextmanager
def catch_interruption() -> Iterator[Interruption]:
    """Let SIGINT and SIGTERM set a flag while inside; a second one acts as it always does."""
    interruption = Interruption()
    before: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        interruption.signal = number
        for known, handler in before.items():
            signal.signal(known, handler)

    for chosen in (signal.SIGINT, signal.SIGTERM):
        before[chosen] = signal.signal(chosen, note)
    try:
        yield interruption
    finally:
        for known, handler in before.items():
            signal.signal(known, handler)
