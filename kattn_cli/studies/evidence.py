"""The numbers of a study's arms: which runs are theirs, and what the tables of these runs say of each measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kattn_cli.errors import KattnError, did_you_mean
from kattn_cli.runs.bits import CORRECT, unpacked
from kattn_cli.runs.run import Run
from kattn_cli.studies.study import Cell, Measure, Study, number_of
from kattn_cli.tables.bits import differing, images_of
from kattn_cli.tables.frames import frame
from kattn_cli.tables.measurements import of_one_checkpoint

LAST = "last"
USUAL: Mapping[str, Mapping[str, Cell]] = {
    "eval.csv": {"split": "test", "severity": 0},
}
"""What is meant where a measure says nothing of a column: the clean test set."""


@dataclass(frozen=True)
class Numbers:
    """A measure of one arm, by seed.

    Attributes:
        values: in the measure's unit; nan where the table holds no number.
        right: of shares of right answers, the share of its rows in which each image was right, ``(images,)``; empty
            unless every seed has it.
        answered: what makes those images what they are, as :func:`~kattn_cli.tables.bits.images_of` has it.
    """

    values: Mapping[int, float] = field(default_factory=dict)
    right: Mapping[int, NDArray[np.floating]] = field(default_factory=dict)
    answered: Mapping[str, object] = field(default_factory=dict)

    @property
    def images(self) -> int:
        """Return how many images each seed answered; 0 where the answers were not kept."""
        return min((len(one) for one in self.right.values()), default=0)

    def answers_as(self, other: Numbers) -> bool:
        """Return whether both answered the same images."""
        same = self.images == other.images and differing(self.answered, other.answered) is None
        return bool(self.right) and same


Runs = Mapping[str, Mapping[int, Run]]
"""By arm and seed."""


def runs_of(study: Study, runs: Runs, arm: str) -> Mapping[int, Run]:
    """Return the runs of an arm by seed, which may be another arm's."""
    return runs.get(study.arms[arm].of or arm, {})


def numbers(study: Study, runs: Runs, measure: str) -> dict[str, Numbers]:
    """Return a measure of every arm of which it is taken, over the seeds that have all of it.

    Raises:
        KattnError: if the table lacks a column that the measure names.
        RunError: if a table cannot be read.
    """
    asked = study.measures[measure]
    arms = {
        name: (_chosen(study, runs, name, measure), study.arms[name].run_as or "") for name in asked.arms or study.arms
    }
    found = numbers_of(asked, measure, arms)
    if asked.among is None:
        return found
    others = numbers(study, runs, asked.among)
    return {name: _among(one, others.get(name, Numbers())) for name, one in found.items()}


def numbers_of(measure: Measure, name: str, arms: Mapping[str, tuple[Mapping[int, Run], str]]) -> dict[str, Numbers]:
    """Return a measure of the runs of each arm, over the seeds that have all of it.

    Args:
        name: of the measure, for messages.
        arms: runs by seed, and the recipe as whose attention they were run; empty for their own.

    Raises:
        KattnError: if the table lacks a column that the measure names.
        RunError: if a table cannot be read.
    """
    rows = {arm: _rows(measure, name, *of_arm) for arm, of_arm in arms.items()}
    return {arm: _numbers(measure, part) for arm, part in _whole(rows).items()}


def _chosen(study: Study, runs: Runs, arm: str, measure: str) -> dict[int, Run]:
    """Return the runs of an arm that a measure is taken of."""
    seeds = study.seeds_of(measure)
    return {seed: run for seed, run in runs_of(study, runs, arm).items() if seed in seeds}


def missing(study: Study, runs: Runs, measure: str) -> dict[str, list[Run]]:
    """Return the runs of each arm of which a measure was not taken yet."""
    found = numbers(study, runs, measure)
    return {
        arm: left
        for arm, known in found.items()
        if (left := [run for seed, run in _chosen(study, runs, arm, measure).items() if seed not in known.values])
    }


def _rows(measure: Measure, name: str, runs: Mapping[int, Run], run_as: str) -> pd.DataFrame:
    """Return the rows of one arm's runs that a measure is the mean of."""
    rows = frame(
        runs.values(), measure.file, run_as=run_as, gradient_as=measure.gradient_as, correct=measure.of_answers
    )
    if rows.empty:
        return rows
    rows = _where(rows, measure, name)
    if "checkpoint" not in measure.where:
        rows = of_one_checkpoint(rows)
    if len(rows) and measure.value not in rows:
        raise _no_column(measure, name, measure.value, rows)
    return _of_most_images(rows)


def _whole(of_arms: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the rows of the runs that have as many as any other: what was interrupted is no measurement yet."""
    counts = {arm: rows.groupby("folder")["folder"].transform("size") for arm, rows in of_arms.items() if len(rows)}
    most = max((count.max() for count in counts.values()), default=0)
    return {arm: rows[counts[arm] == most] if len(rows) else rows for arm, rows in of_arms.items()}


def _numbers(measure: Measure, rows: pd.DataFrame) -> Numbers:
    if rows.empty:
        return Numbers()
    values = {int(str(seed)): float(part[measure.value].mean(skipna=False)) for seed, part in rows.groupby("run_seed")}
    if not (measure.of_answers and CORRECT in rows and (right := _right(rows))):
        return Numbers(values)
    return Numbers(values, right, images_of({str(key): cell for key, cell in rows.iloc[0].items()}))


def _among(own: Numbers, other: Numbers) -> Numbers:
    """Return the share, in %, of the answers that are right in ``other`` which are right here, too."""
    values = {}
    for seed, right in own.right.items():
        if seed in other.right:
            before = other.right[seed][: len(right)]
            values[seed] = 100 * float((right * before).sum() / before.sum()) if before.any() else math.nan
    return Numbers(values)


def _where(rows: pd.DataFrame, measure: Measure, name: str) -> pd.DataFrame:
    usual = {column: value for column, value in USUAL.get(measure.file, {}).items() if column in rows}
    where: dict[str, Cell | list[Cell]] = {**usual, **measure.where}
    if measure.images and "images" not in where:
        where["images"] = measure.images
    for column, cell in where.items():
        wanted = cell if isinstance(cell, list) else [cell]
        if column in rows:
            rows = rows[_fits(rows, column, wanted)]
        elif "" not in wanted:  # a column that is not there is empty
            raise _no_column(measure, name, column, rows)
    return rows


def _no_column(measure: Measure, name: str, column: str, rows: pd.DataFrame) -> KattnError:
    known = [str(one) for one in rows]
    return KattnError(f"measure {name}: {measure.file} has no column {column}{did_you_mean(column, known)}")


def _fits(rows: pd.DataFrame, column: str, wanted: Sequence[Cell]) -> NDArray[np.bool_]:
    """Return which rows have one of the values; an empty text fits an empty cell."""
    fits = np.zeros(len(rows), bool)
    for value in wanted:
        if value == LAST:
            greatest = rows.groupby("folder")[column].transform("max")
            fits |= (rows[column] == greatest).to_numpy()
        elif not isinstance(value, bool) and (number := number_of(value)) is not None:
            cells = pd.to_numeric(rows[column], errors="coerce").to_numpy(float)
            fits |= np.isclose(cells, number, rtol=1e-6, atol=0)
        else:
            fits |= (rows[column].fillna("").astype(str) == str(value)).to_numpy()
    return fits


def _of_most_images(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each run's rows of the most images: a quick look never mixes with the whole set."""
    if "images" not in rows:
        return rows
    return rows[rows["images"] == rows.groupby("folder")["images"].transform("max")]


def _right(rows: pd.DataFrame) -> dict[int, NDArray[np.floating]]:
    """Return by seed in which share of its rows each image was right; nothing where one row did not keep it."""
    found: dict[int, NDArray[np.floating]] = {}
    for seed, part in rows.groupby("run_seed"):
        cells = list(zip(part[CORRECT], part["images"], strict=True))
        if any(not isinstance(text, str) or not text for text, _ in cells):
            return {}
        found[int(str(seed))] = np.mean([unpacked(text, int(images)) for text, images in cells], axis=0)
    lengths = {len(one) for one in found.values()}
    return found if len(lengths) == 1 else {}


def as_rows(study: Study, found: Mapping[str, Mapping[str, Numbers]], runs: Runs) -> Iterable[dict[str, object]]:
    """Yield a row for each measure, arm and seed: ``measure, arm, seed, value, unit, images, folder``."""
    for measure, of_arms in found.items():
        for arm, known in of_arms.items():
            for seed, value in sorted(known.values.items()):
                yield {
                    "measure": measure,
                    "arm": arm,
                    "seed": seed,
                    "value": value,
                    "unit": study.measures[measure].unit,
                    "images": len(known.right.get(seed, ())) or "",
                    "folder": str(runs_of(study, runs, arm)[seed].folder),
                }
