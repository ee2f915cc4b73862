"""A number against a bound that is written down beforehand: it holds, does not hold, or is undecided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kattn_cli.statistics.effect import Effect
from kattn_cli.statistics.multiplicity import holm
from kattn_cli.statistics.power import FEW_SEEDS, LEVEL
from kattn_cli.statistics.verdict import Decision, Question, Verdict


@dataclass(frozen=True)
class Bounded(Question):
    """Whether a number is above ``bound``, or below it where lower is better. It has no margin."""

    margin: float = math.inf
    bound: float = 0.0

    @property
    def p_value(self) -> float:
        """Return the two-sided p-value of "the number is the bound"; nan of fewer than three seeds."""
        return self.effect.p_apart(self.bound) if self.decidable else math.nan

    @property
    def holds(self) -> bool:
        """Return whether the number is on the side of the bound on which it is said to be."""
        return (self.effect.estimate > self.bound) != self.lower_is_better


@dataclass(frozen=True)
class BoundDecision(Decision):
    """The verdict on a number, of whose p-values ``p_apart`` is from the bound."""

    @property
    def bounded(self) -> Bounded:
        assert isinstance(self.question, Bounded)
        return self.question

    @cached_property
    def seeds_needed(self) -> int | None:
        """How many tell with power 0.8 a number as far from the bound as this one; None where no number does."""
        away = abs(self.bounded.effect.estimate - self.bounded.bound)
        return self.bounded.effect.seeds_for(away, self._first) if away > 0 else None

    @cached_property
    def sentence(self) -> str:
        """What was measured, the verdict, and why, in words."""
        effect = self.bounded.effect
        low, high = self.interval
        side = "below" if self.bounded.lower_is_better else "above"
        ends = "" if math.isnan(low) else f" [{low:.3g}, {high:.3g}]"
        number = f"{effect.estimate:.3g}{ends} of {effect.seeds} seeds, to be {side} {self.bounded.bound:g}"
        said = f"{self.verdict.value.capitalize()}: {number}; {'; '.join(self._why(effect))}."
        return said.replace("-", "−")

    def _why(self, effect: Effect) -> list[str]:
        if self.verdict is not Verdict.undecided:
            return ["p < 0.0001" if self.p_apart < 1e-4 else f"p = {self.p_apart:.2g}"]
        if effect.nothing:
            return [effect.nothing]
        if not self.bounded.decidable:
            return [f"it takes {FEW_SEEDS} seeds"]
        parts = [f"{self.alone.value} in its own family, and not among all families of the page"] if self.alone else []
        if not math.isnan(self.smallest_seen):
            parts.append(f"{self.smallest_seen:.3g} from the bound could have been seen (power 0.8)")
        return [*parts, f"what is seen takes {self.seeds_needed:,} seeds"] if self.seeds_needed else parts


def decide_bounds(family: Sequence[Bounded], level: float = LEVEL) -> list[BoundDecision]:
    """Return the verdicts on the numbers of one family, after Holm."""
    adjusted = holm([one.p_value for one in family])
    asked = max(1, sum(one.decidable for one in family))
    decisions = []
    for one, p in zip(family, map(float, adjusted), strict=True):
        verdict = Verdict.undecided
        if p <= level:
            verdict = Verdict.holds if one.holds else Verdict.does_not_hold
        decisions.append(BoundDecision(one, verdict, p, math.nan, math.nan, level, asked))
    return decisions
