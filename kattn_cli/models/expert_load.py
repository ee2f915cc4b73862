"""How evenly the tokens of one layer are spread over its experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ExpertLoad:
    """What was asked of each expert of a layer.

    Args:
        asked: choices that fell on it; a token makes several.
        dropped: of these, the ones that found no place.
        probability: that the router gave it, mean over the tokens.
    """

    asked: Sequence[float]
    dropped: Sequence[float]
    probability: Sequence[float]

    @property
    def shares(self) -> list[float]:
        """Of all choices, by expert; even ones are 1 / count. All 0 where nothing was asked."""
        total = sum(self.asked)
        return [asked / total if total else 0.0 for asked in self.asked]

    @property
    def dropped_shares(self) -> list[float]:
        """Of what was asked of an expert, by expert."""
        return [lost / asked if asked else 0.0 for asked, lost in zip(self.asked, self.dropped, strict=True)]

    @property
    def dropped_share(self) -> float:
        """Of all choices."""
        total = sum(self.asked)
        return sum(self.dropped) / total if total else 0.0

    @property
    def evenness(self) -> float:
        """Entropy of the shares over that of even ones: 1 for an even load, 0 where one expert has all."""
        shares = np.array([share for share in self.shares if share])
        if len(self.asked) == 1:
            return 1.0
        return float(-(shares * np.log(shares)).sum() / np.log(len(self.asked)))
