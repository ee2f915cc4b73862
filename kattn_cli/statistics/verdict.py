"""The five verdicts on an effect, of a margin that is written down before it is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from kattn_cli.statistics.effect import Effect
from kattn_cli.statistics.multiplicity import benjamini_hochberg, shaffer
from kattn_cli.statistics.power import FEW_SEEDS, LEVEL


class Verdict(str, Enum):
    """What an effect and its margin come to, or a number and its bound."""

    better = "better"
    worse = "worse"
    equivalent = "equivalent within the margin"
    excluded = "the paper's effect is excluded here"
    undecided = "undecided"
    holds = "holds"
    does_not_hold = "does not hold"


@dataclass(frozen=True)
class Question:
    """What is asked of an effect.

    Attributes:
        margin: above 0, the smallest effect that matters, written down before anything is measured; nan where none was,
            and nothing is equivalent then.
        lower_is_better: whether an effect below 0 is the better one.
        published: the paper's effect; nan where it prints none. An effect of 0 says nothing that can be excluded.
        unit: of the effect, for sentences: ``points``.

    Raises:
        ValueError: if ``margin`` is 0 or less.
    """

    effect: Effect
    margin: float = math.nan
    lower_is_better: bool = False
    published: float = math.nan
    unit: str = ""

    def __post_init__(self) -> None:
        if self.margin <= 0:
            raise ValueError(f"a margin is above 0, not {self.margin}")

    @property
    def decidable(self) -> bool:
        """Whether there are seeds enough to ask anything of other seeds."""
        return self.effect.seeds >= FEW_SEEDS

    @property
    def side(self) -> str:
        """``better`` or ``worse``, by the side of 0 on which the effect is."""
        return (Verdict.better if (self.effect.estimate > 0) != self.lower_is_better else Verdict.worse).value

    @property
    def p_values(self) -> tuple[float, float, float]:
        """That the effect is 0, outside the margin, or at least the published one; nan where it is not asked."""
        if not self.decidable:
            return math.nan, math.nan, math.nan
        effect, published = self.effect, self.published
        within = effect.p_within(self.margin) if effect.room > self.margin else math.nan
        excluded = math.nan
        if published and effect.room > abs(published):
            excluded = effect.p_below(published) if published > 0 else effect.p_above(published)
        return effect.p_apart(), within, excluded


@dataclass(frozen=True)
class Decision:
    """The verdict on a question.

    Attributes:
        p_apart, p_within, p_excluded: after the correction for the family: that the effect is 0, that it is outside the
            margin, that it is the published one or beyond. Nan where it was not asked.
        level: the family's.
        questions: how many the family asks.
        alone: what the family's own verdict was, where the correction for many families took it back.
    """

    question: Question
    verdict: Verdict
    p_apart: float
    p_within: float
    p_excluded: float
    level: float = LEVEL
    questions: int = 1
    alone: Verdict | None = None

    @property
    def p_value(self) -> float:
        """The corrected p-value of the test that decided; of an undecided question the least that there is."""
        of_verdict = {
            Verdict.better: self.p_apart,
            Verdict.worse: self.p_apart,
            Verdict.equivalent: self.p_within,
            Verdict.excluded: self.p_excluded,
        }
        known = [p for p in (self.p_apart, self.p_within, self.p_excluded) if not math.isnan(p)]
        return of_verdict.get(self.verdict, min(known, default=math.nan))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 %, of this effect alone, which nothing corrects."""
        return self.question.effect.interval()

    @cached_property
    def smallest_seen(self) -> float:
        """The smallest effect that could have been told from 0 here with power 0.8; nan where none could."""
        return self.question.effect.smallest(self._first)

    @cached_property
    def seeds_needed(self) -> int | None:
        """How many tell an effect of the margin with power 0.8; None where no number does, or it is not known."""
        return self.question.effect.seeds_for(self.question.margin, self._first)

    @cached_property
    def images_needed(self) -> int | None:
        """The same of images, over the seeds that there are."""
        return self.question.effect.images_for(self.question.margin, self._first)

    @cached_property
    def sentence(self) -> str:
        """What was measured, the verdict, and why, in words."""
        return _sentence(self)

    @property
    def _first(self) -> float:
        """The level of the first step of the correction for the family."""
        return self.level / self.questions


def decide(family: Sequence[Question], level: float = LEVEL) -> list[Decision]:
    """Return the verdicts on the questions of one family: a claim, or a study.

    The chance that any verdict of the family is wrong is at most ``level``. Equivalence comes before a difference: what
    is both within the margin and not 0 is equivalent, and its sentence says on which side of 0 it is.
    """
    if not family:
        return []
    adjusted = shaffer([question.p_values for question in family])
    asked = max(1, sum(question.decidable for question in family))
    decisions = []
    for question, row in zip(family, adjusted, strict=True):
        apart, within, excluded = (float(p) for p in row)
        verdict = Verdict.undecided
        if within <= level:
            verdict = Verdict.equivalent
        elif apart <= level:
            verdict = Verdict(question.side)
        elif excluded <= level:
            verdict = Verdict.excluded
        decisions.append(Decision(question, verdict, apart, within, excluded, level, asked))
    return decisions


def across(families: Sequence[Sequence[Decision]], level: float = LEVEL) -> list[list[Decision]]:
    """Return the decisions of a page: of all families that it tells of, the share told wrongly is ``level`` on average.

    Benjamini and Hochberg (1995) over families, each by its least corrected p-value; within a family that is left, what
    is told is told at ``level`` times the share of families that are left (Benjamini and Bogomolov, 2014).
    """
    known = [[one.p_value for one in family if not math.isnan(one.p_value)] for family in families]
    least = [min(p_values, default=math.nan) for p_values in known]
    left = benjamini_hochberg(least) <= level
    strict = level * float(left.sum()) / max(1, int(np.isfinite(least).sum()))
    return [
        [one if told and one.p_value <= strict else _taken_back(one) for one in family]
        for told, family in zip(left, families, strict=True)
    ]


def _taken_back(one: Decision) -> Decision:
    return one if one.verdict is Verdict.undecided else replace(one, verdict=Verdict.undecided, alone=one.verdict)


def _sentence(found: Decision) -> str:
    question, effect = found.question, found.question.effect
    unit = f" {question.unit}" if question.unit else ""
    parts = [f"{found.verdict.value[0].upper()}{found.verdict.value[1:]}: {_measured(effect, unit)}"]
    level = found.level
    if found.verdict is Verdict.equivalent:
        low, high = effect.interval(1 - 2 * level)
        ends = f"{100 - 200 * level:.0f} % interval [{_signed(low)}, {_signed(high)}]"
        parts.append(f"its {ends} lies within ± {question.margin:g} (two one-sided tests, {_p(found.p_within)})")
        if found.p_apart <= level:
            parts.append(f"it is on the {question.side} side of 0 ({_p(found.p_apart)})")
    elif found.verdict in (Verdict.better, Verdict.worse):
        parts.append(_p(found.p_apart))
        if effect.room <= question.margin:
            parts.append(_no_room(effect, question.margin))
    elif found.verdict is Verdict.excluded:
        parts.append(f"the paper's {_signed(question.published)} is excluded ({_p(found.p_excluded)})")
        parts.extend(_lacking(found, unit))
    else:
        if found.alone:
            parts.append(f"{found.alone.value} in its own family, and not among all families of the page")
        parts.extend(_lacking(found, unit))
    if effect.missing:
        parts.append(f"{_count(effect.missing, 'seed')} left out whose number is not one")
    return "; ".join(parts) + "."


def _measured(effect: Effect, unit: str) -> str:
    """Return ``+0.5 points [−0.1, 1.1] of 5 seeds × 2,000 images``."""
    if math.isnan(effect.estimate):
        return "nothing was measured"
    low, high = effect.interval()
    ends = "" if math.isnan(low) else f" [{_signed(low)}, {_signed(high)}]"
    images = f" × {effect.images:,} images" if effect.images else ""
    return f"{_signed(effect.estimate)}{unit}{ends} of {_count(effect.seeds, 'seed')}{images}"


def _lacking(found: Decision, unit: str) -> list[str]:
    """Return why nothing could be told, and what it would take."""
    question, effect = found.question, found.question.effect
    if effect.nothing:
        return [effect.nothing]
    if not question.decidable:
        return [f"{_count(effect.seeds, 'seed')} say{'s' * (effect.seeds == 1)} nothing of other seeds"]
    parts = []
    low, high = effect.interval()
    if found.questions > 1 and (low > 0 or high < 0):
        parts.append(f"among {found.questions} questions {_p(found.p_apart)}")
    if effect.room <= question.margin:
        return [_no_room(effect, question.margin)]
    if not math.isnan(found.smallest_seen):
        parts.append(f"an effect of {_short(found.smallest_seen)}{unit} could have been seen (power 0.8)")
    takes = f"one of {question.margin:g} takes"
    if found.seeds_needed is not None:
        parts.append(f"{takes} {_count(found.seeds_needed, 'seed')}")
    elif found.images_needed is not None:
        parts.append(f"{takes} {found.images_needed:,} images")
    return parts


def _no_room(effect: Effect, margin: float) -> str:
    return f"both are within {effect.room:.2g} of the end of the scale, which leaves no room for {margin:g}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _p(value: float) -> str:
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def _short(number: float) -> str:
    return f"{number:.3g}"


def _signed(number: float) -> str:
    return f"{0.0 if abs(number) < 1e-12 else number:+.3g}".replace("-", "−")
