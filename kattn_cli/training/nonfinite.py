"""Losses that are no longer numbers, noticed without making a GPU wait at every step."""

from __future__ import annotations

import torch
from torch import Tensor

CHECK_EVERY = 10
"""Steps between two looks at a GPU, which each wait for it."""

_NEVER = 2**62


class NonFinite:
    """Remembers, on the device, the first step whose loss was not a finite number."""

    def __init__(self, device: torch.device) -> None:
        self.every = 1 if device.type == "cpu" else CHECK_EVERY
        self._first = torch.full((), _NEVER, dtype=torch.int64, device=device)

    def note(self, step: int, loss: Tensor) -> None:
        """Take the loss of ``step``, a scalar on the device."""
        bad = torch.where(torch.isfinite(loss), _NEVER, step)
        torch.minimum(self._first, bad, out=self._first)

    def first(self) -> int | None:
        """The step that was noted first, or None; waits for the device."""
        step = int(self._first.item())
        return None if step == _NEVER else step
