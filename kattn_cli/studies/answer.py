"""All that came out of a study: its numbers, its verdicts, what it took, and what it said when it began."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kattn_cli.runs.run import Run
from kattn_cli.studies.evidence import Numbers, Runs, as_rows, numbers
from kattn_cli.studies.judgement import Judged, judge
from kattn_cli.studies.registration import Registration
from kattn_cli.studies.study import Study


@dataclass(frozen=True)
class Answer:
    """A study as it stands.

    Attributes:
        found: its numbers by measure and arm.
        judged: the primary comparisons first.
        wordings: what the study said each time that it was run with another text, oldest first.
    """

    study: Study
    runs: Runs
    found: Mapping[str, Mapping[str, Numbers]]
    judged: Sequence[Judged]
    wordings: Sequence[Registration]

    @property
    def primary(self) -> list[Judged]:
        """Return the comparisons that answer the question."""
        return [one for one in self.judged if one.comparison.primary]

    @property
    def secondary(self) -> list[Judged]:
        """Return all other comparisons."""
        return [one for one in self.judged if not one.comparison.primary]

    def missing(self) -> dict[str, list[int]]:
        """Return the seeds that arms should have and that are not trained."""
        wanted = self.study.trained()
        left = {arm: [seed for seed in seeds if seed not in self.runs.get(arm, {})] for arm, seeds in wanted.items()}
        return {arm: seeds for arm, seeds in left.items() if seeds}

    def values(self) -> list[dict[str, Any]]:
        """Return a row for each measure, arm and seed."""
        return list(as_rows(self.study, self.found, self.runs))

    def verdicts(self) -> list[dict[str, Any]]:
        """Return a row for each comparison and measure."""
        return [self._row(one) for one in self.judged]

    def training_seconds(self) -> dict[str, float]:
        """Return the seconds that the trainings of each arm took together."""
        return {
            arm: sum(float(run.manifest.get("train_seconds") or 0) for run in by_seed.values())
            for arm, by_seed in self.runs.items()
        }

    def hours_needed(self, one: Judged) -> float:
        """Return how long the trainings of all seeds would take that a difference of the margin needs; nan if unknown.

        On the machines that trained what there is, one after the other.
        """
        arms = {self.study.arms[arm].of or arm for arm in (one.comparison.first, one.comparison.second)}
        seconds = self.training_seconds()
        each = sum(seconds.get(arm, 0.0) / max(1, len(self.runs.get(arm, {}))) for arm in arms)
        return each * one.decision.seeds_needed / 3600 if one.decision.seeds_needed else math.nan

    def early(self) -> int:
        """Return how many runs began before the study was first run: they were not trained for it."""
        registered = self.wordings[0].date if self.wordings else ""
        return sum(str(run.manifest.get("start") or "") < registered for run in self._all_runs())

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield the records of all trainings and measurements."""
        for run in self._all_runs():
            manifest = run.manifest
            yield manifest
            yield from manifest.get("measurements") or []

    def _all_runs(self) -> Iterator[Run]:
        return (run for by_seed in self.runs.values() for run in by_seed.values())

    def _row(self, one: Judged) -> dict[str, Any]:
        decision, effect = one.decision, one.effect
        low, high = effect.interval(1 - self.study.level)
        return {
            "first": one.comparison.first,
            "second": one.comparison.second,
            "measure": one.measure,
            "primary": one.comparison.primary,
            "first_mean": one.means[0],
            "second_mean": one.means[1],
            "difference": effect.estimate,
            "low": low,
            "high": high,
            "unit": self.study.measures[one.measure].unit,
            "margin": decision.question.margin,
            "published": decision.question.published,
            "verdict": decision.verdict.value,
            "p_apart": decision.p_apart,
            "p_within": decision.p_within,
            "p_excluded": decision.p_excluded,
            "power": one.power,
            "smallest_seen": decision.smallest_seen,
            "seeds_needed": decision.seeds_needed or "",
            "images_needed": decision.images_needed or "",
            "hours_needed": self.hours_needed(one),
            "seeds": effect.seeds,
            "images": effect.images or "",
            "model": effect.model,
        }


def answer(study: Study, runs: Runs, wordings: Sequence[Registration]) -> Answer:
    """Return what the tables of the runs say of a study.

    Raises:
        KattnError, RunError: if a table lacks what a measure asks for, or cannot be read.
    """
    found = {name: numbers(study, runs, name) for name in study.measures}
    return Answer(study, runs, found, judge(study, found), wordings)
