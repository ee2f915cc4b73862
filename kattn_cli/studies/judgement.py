"""The verdicts of a study: each comparison in each measure, by the models of :mod:`kattn_cli.statistics`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from kattn_cli.statistics.crossed import crossed
from kattn_cli.statistics.effect import Effect
from kattn_cli.statistics.two_way import compare
from kattn_cli.statistics.verdict import Decision, Question, decide
from kattn_cli.studies.evidence import Numbers
from kattn_cli.studies.study import Comparison, Study

Found = Mapping[str, Mapping[str, Numbers]]
"""By measure and arm."""
Pair = tuple[str, str]
"""Two arms: the first less the second."""


@dataclass(frozen=True)
class Judged:
    """One comparison in one measure. ``means``: of the first arm and the second, over the seeds that both have."""

    comparison: Comparison
    measure: str
    means: tuple[float, float]
    decision: Decision

    @property
    def effect(self) -> Effect:
        """Return the first less the second."""
        return self.decision.question.effect

    @property
    def power(self) -> float:
        """Return how often a difference of the margin would be told from 0 here; nan where that is not known."""
        return self.effect.power(self.decision.question.margin)


def judge(study: Study, found: Found) -> list[Judged]:
    """Return every comparison that shares a seed, the primary ones first.

    The primary ones are one family, corrected together; all others are another, which answers no question by itself.
    """
    effects = {name: effects_of(study, name, of_arms) for name, of_arms in found.items()}
    judged = []
    for primary in (True, False):
        asked = [
            (comparison, name, effect)
            for comparison in study.comparisons
            if comparison.primary is primary
            for name in study.measured(comparison)
            if (effect := effects[name].get((comparison.first, comparison.second))) is not None
        ]
        decisions = decide([_question(study, *one) for one in asked], study.level)
        judged += [
            Judged(comparison, name, _means(comparison, found[name]), decision)
            for (comparison, name, _), decision in zip(asked, decisions, strict=True)
        ]
    return judged


def effects_of(study: Study, measure: str, of_arms: Mapping[str, Numbers]) -> dict[Pair, Effect]:
    """Return the first arm less the second, of each comparison in a measure whose arms share a seed.

    Where both kept which answers were right, seeds and images are crossed; else the scatter over seeds is pooled over
    all arms that are compared in the measure.
    """
    compared = [one for one in study.comparisons if measure in study.measured(one)]
    pairs = list(dict.fromkeys((one.first, one.second) for one in compared))
    return effects(pairs, of_arms)


def effects(pairs: Sequence[Pair], of_arms: Mapping[str, Numbers]) -> dict[Pair, Effect]:
    """Return the effect of each pair of arms that share a seed; see :func:`effects_of`."""
    known = {pair: tuple(of_arms.get(arm, Numbers()) for arm in pair) for pair in pairs}
    shared = [pair for pair, (first, second) in known.items() if set(first.values) & set(second.values)]
    answered = [pair for pair in shared if known[pair][0].answers_as(known[pair][1])]
    numbers = [pair for pair in shared if pair not in answered]
    found: dict[Pair, Effect] = {pair: crossed(known[pair][0].right, known[pair][1].right) for pair in answered}
    values = {arm: of_arm.values for arm, of_arm in of_arms.items()}
    return found | dict(zip(numbers, compare(values, numbers), strict=True))


def _question(study: Study, comparison: Comparison, name: str, effect: Effect) -> Question:
    measure = study.measures[name]
    published = comparison.published.get(name, math.nan)
    return Question(effect, measure.margin or math.nan, measure.lower_is_better, published, measure.unit)


def _means(comparison: Comparison, of_arms: Mapping[str, Numbers]) -> tuple[float, float]:
    first, second = of_arms[comparison.first].values, of_arms[comparison.second].values
    seeds = sorted(set(first) & set(second))
    return fmean(first[seed] for seed in seeds), fmean(second[seed] for seed in seeds)
