"""The verdicts of a study: each comparison in each measure, by the models of :mod:`kattn_cli.statistics`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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


def judge(study: Study, found: Found) -> list[Judged]:
    """Return every comparison that shares a seed, the primary ones first.

    The primary ones are one family, corrected for each other by Holm's method; all others are another, which answers
    no question by itself.
    """
    asked = [one for primary in (True, False) for one in _asked(study, found, primary)]
    judged = []
    for primary in (True, False):
        family = [one for one in asked if one[0].primary is primary]
        decisions = decide([question for *_, question in family], study.level, power=study.power)
        judged += [
            Judged(comparison, measure, _means(comparison, found[measure]), decision)
            for (comparison, measure, _), decision in zip(family, decisions, strict=True)
        ]
    return judged


def effect_of(comparison: Comparison, of_arms: Mapping[str, Numbers]) -> Effect | None:
    """Return the first arm less the second; None where they share no seed.

    Where both kept which answers were right, seeds and images are crossed; else the scatter over seeds is pooled over
    all arms of which the measure was taken.
    """
    first, second = (of_arms.get(arm, Numbers()) for arm in (comparison.first, comparison.second))
    if not set(first.values) & set(second.values):
        return None
    if first.images and first.images == second.images:
        return crossed(first.right, second.right)
    values = {arm: known.values for arm, known in of_arms.items() if known.values}
    (effect,) = compare(values, [(comparison.first, comparison.second)])
    return effect


def _asked(study: Study, found: Found, primary: bool) -> Iterator[tuple[Comparison, str, Question]]:
    for comparison in study.comparisons:
        if comparison.primary is not primary:
            continue
        for name in study.measured(comparison):
            effect = effect_of(comparison, found[name])
            if effect is not None:
                measure = study.measures[name]
                published = comparison.published.get(name, math.nan)
                yield comparison, name, Question(effect, measure.margin, measure.lower_is_better, published)


def _means(comparison: Comparison, of_arms: Mapping[str, Numbers]) -> tuple[float, float]:
    first, second = of_arms[comparison.first].values, of_arms[comparison.second].values
    seeds: Sequence[int] = sorted(set(first) & set(second))
    return fmean(first[seed] for seed in seeds), fmean(second[seed] for seed in seeds)
