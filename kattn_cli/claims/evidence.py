"""The tables of all runs that claims are judged by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache

import pandas as pd

from kattn_cli.figures.frames import attack_frame, errors_of_runs, frame
from kattn_cli.results import Run


class Evidence:
    """``costs``: rows of ``kattn complexity``; ``races``: rows of ``kattn kernel-pca``; either may be empty."""

    def __init__(self, runs: Sequence[Run], costs: pd.DataFrame, races: pd.DataFrame) -> None:
        self.runs, self.costs, self.races = runs, costs, races
        self.table = cache(self._table)

    def _table(self, name: str) -> pd.DataFrame:
        if name == "attacks":
            return attack_frame(self.runs)
        if name == "corruption":
            return self._mean_errors()
        return frame(self.runs, f"{name}.csv")

    def labels(self, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
        """Each label's rows of a table (``audit/alignment``, say)."""
        rows = self.table(name)
        if len(rows):
            for label, part in rows.groupby("label", sort=False):
                yield str(label), part

    def pairs(self, name: str, first: str, second: str) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
        """Labels whose last part is like ``first``, with the rows of ``second`` of the same folder beside them.

        ``pairs("metrics", "scaled*", "softmax")`` gives ``audit/scaled`` and ``audit/scaled_matrix``, each with
        ``audit/softmax``.
        """
        parts = dict(self.labels(name))
        for label, rows in parts.items():
            folder, slash, own = label.rpartition("/")
            other = f"{folder}{slash}{second}"
            if fnmatchcase(own, first) and other != label and other in parts:
                yield label, rows, parts[other]

    def _mean_errors(self) -> pd.DataFrame:
        """``label, mechanism, run_seed, error``: the mean error over types and severities, in %."""
        rows = [
            {**together.iloc[0][["label", "mechanism", "run_seed"]], "error": errors.mean()}
            for together, errors in errors_of_runs(frame(self.runs, "eval.csv"))
        ]
        return pd.DataFrame(rows)


def by_seed(rows: pd.DataFrame, column: str) -> dict[int, float]:
    """The mean of a column for each seed."""
    return {int(str(seed)): float(part[column].mean()) for seed, part in rows.groupby("run_seed")}


def last(rows: pd.DataFrame) -> pd.DataFrame:
    """Those of each run's last epoch."""
    return rows[rows["epoch"] == rows.groupby("run_seed")["epoch"].transform("max")]


def first(rows: pd.DataFrame) -> pd.DataFrame:
    """Those of each run's first epoch."""
    return rows[rows["epoch"] == rows.groupby("run_seed")["epoch"].transform("min")]


def less(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    """The difference, paired by seed."""
    return {seed: value - other[seed] for seed, value in one.items() if seed in other}


def told(values: dict[int, float], digits: int = 3) -> str:
    """The mean over the seeds that have a number, in a few digits."""
    known = [value for value in values.values() if math.isfinite(value)]
    return f"{sum(known) / len(known):.{digits}g}" if known else "no number"
