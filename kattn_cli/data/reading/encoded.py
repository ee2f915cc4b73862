"""Images as they lie on disk, before anything of them is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Encoded(Protocol):
    """Images as they lie on disk. It is sent to the workers, so it should be small and quick to pickle."""

    def source(self, row: int) -> str | bytes:
        """The path of an image, or its encoded bytes."""

    def name(self, row: int) -> str:
        """What to call an image in messages."""


@dataclass(frozen=True)
class Paths:
    """Image files. A million paths take a tenth of the memory as an array that they take as strings."""

    paths: np.ndarray
    """``(n,)`` UTF-8 bytes, see :func:`paths_of`."""

    def source(self, row: int) -> str:
        """See :class:`Encoded`."""
        return self.paths[row].decode("utf-8", "surrogateescape")

    def name(self, row: int) -> str:
        """See :class:`Encoded`."""
        return self.source(row)


def paths_of(paths: Sequence[str]) -> Paths:
    """Image files at ``paths``."""
    return Paths(np.array([path.encode("utf-8", "surrogateescape") for path in paths], dtype=np.bytes_))
