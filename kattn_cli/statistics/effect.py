"""What any model of a comparison comes to: an effect with an interval, and p-values against any bound."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import special

from kattn_cli.statistics.power import LEVEL, POWER, Components, seeds_needed, smallest_effect

SAME = "all seeds give the same difference, and a spread of 0 is not a variance of 0"
ONE = "one seed has no spread"
NONE = "no seed has both"


@dataclass(frozen=True)
class Effect(ABC):
    """The first's value less the second's, in the measure's unit.

    Attributes:
        estimate: nan where nothing was measured.
        seeds: how many it is of.
        images: how many it is of; 0 of a measure that is not of images.
        model: what it was estimated by, in words.
        missing: seeds left out, since a number of theirs is not one.
        nothing: why it tells nothing, as a sentence; empty where it does.
        room: the largest difference that there could be: of two mechanisms of 0 and 0.5 % accuracy, 0.5 points.
    """

    estimate: float
    seeds: int
    images: int = 0
    model: str = ""
    missing: int = 0
    nothing: str = ""
    room: float = math.inf

    @abstractmethod
    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the two-sided interval; nan where the effect tells nothing."""

    @abstractmethod
    def p_above(self, bound: float) -> float:
        """Return the one-sided p-value of "the effect is at most ``bound``": small where it is above.

        It is 1 where the effect tells nothing, and nan where nothing was measured.
        """

    @abstractmethod
    def p_below(self, bound: float) -> float:
        """Return the one-sided p-value of "the effect is at least ``bound``": small where it is below."""

    def power(self, effect: float, level: float = LEVEL) -> float:
        """Return how often an effect of this size would be told from 0 here; nan where it is not known."""
        return math.nan

    def smallest(self, level: float = LEVEL, of: float = POWER) -> float:
        """Return the smallest effect that could have been told from 0 with power ``of``; nan where it is not known."""
        return math.nan

    def seeds_for(self, effect: float, level: float = LEVEL, of: float = POWER) -> int | None:
        """Return how many seeds would tell an effect of this size from 0; None where none do, or it is not known."""
        return None

    def images_for(self, effect: float, level: float = LEVEL, of: float = POWER) -> int | None:
        """Return how many images would, over the seeds that there are; None where none do, or it is not known."""
        return None

    def p_apart(self, bound: float = 0.0) -> float:
        """Return the two-sided p-value of "the effect is ``bound``"."""
        return float(np.minimum(1.0, 2 * np.minimum(self.p_above(bound), self.p_below(bound))))

    def p_within(self, margin: float) -> float:
        """Return the p-value of "the effect is not within ± ``margin``": two one-sided tests (Schuirmann, 1987)."""
        return max(self.p_above(-margin), self.p_below(margin))


@dataclass(frozen=True)
class StudentEffect(Effect):
    """An effect whose estimate has a Student distribution.

    Attributes:
        standard_error: of the estimate; nan where the effect tells nothing.
        df: degrees of freedom of ``standard_error``.
        components: the variances that ``standard_error`` comes from, for what could be seen by them.
    """

    standard_error: float = math.nan
    df: float = 0.0
    components: Components | None = None

    @property
    def tells(self) -> bool:
        """Whether there is a standard error to tell anything by."""
        return self.standard_error > 0 and self.df > 0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        if not self.tells:
            return math.nan, math.nan
        half = float(special.stdtrit(self.df, (1 + level) / 2)) * self.standard_error
        return self.estimate - half, self.estimate + half

    def p_above(self, bound: float) -> float:
        return self._p_value(bound - self.estimate)

    def p_below(self, bound: float) -> float:
        return self._p_value(self.estimate - bound)

    def _p_value(self, beyond: float) -> float:
        if math.isnan(self.estimate):
            return math.nan
        return float(special.stdtr(self.df, beyond / self.standard_error)) if self.tells else 1.0

    def power(self, effect: float, level: float = LEVEL) -> float:
        if not self.tells or self.components is None:
            return math.nan
        return self.components.power(effect, self.seeds, level=level)

    def smallest(self, level: float = LEVEL, of: float = POWER) -> float:
        if not self.tells or self.components is None:
            return math.nan
        return smallest_effect(self.components, self.seeds, level=level, of=of)

    def seeds_for(self, effect: float, level: float = LEVEL, of: float = POWER) -> int | None:
        if not self.tells or self.components is None:
            return None
        return seeds_needed(self.components, effect, level=level, of=of)
