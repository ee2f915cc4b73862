"""Random whole numbers one at a time, drawn in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
_BLOCK = 4096


class Dice:
    """The numbers of ``draw``, as fast as Python can use them."""

    def __init__(self, draw: np.random.Generator) -> None:
        self._draw = draw
        self._block: Iterator[int] = iter(())

    def below(self, count: int) -> int:
        """One of 0 … ``count - 1``, ``count`` being far less than 2³²."""
        number = next(self._block, None)
        if number is None:
            self._block = iter(self._draw.integers(0, 1 << 32, _BLOCK).tolist())
            number = next(self._block)
        return number * count >> 32

    def one_of(self, choices: Sequence[T]) -> T:
        """One of ``choices``."""
        return choices[self.below(len(choices))]
