"""The tables of all runs that claims are judged by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from kattn_cli.papers.described import is_sequence_run, sequence_run
from kattn_cli.papers.values import sequence_values
from kattn_cli.runs.run import RECIPE, Run
from kattn_cli.tables.complexity import completed
from kattn_cli.tables.frames import attack_frame, errors_of_runs, frame, shared_folder
from kattn_cli.tables.measurements import settings, told_apart

OF_IMAGES = ("attacks", "corruption", "corruption_errors", "eval", "metrics")
"""Tables of which the runs on images count alone; those on sequences have their own, :attr:`Evidence.sequences`."""
NONE = pd.DataFrame()


class Evidence:
    """Runs, and the tables of costs, any of which may be empty.

    ``costs``: rows of ``kattn complexity``; ``races``: of ``kattn kernel-pca``; ``decoding``: of
    ``kattn decoding``; ``models``: of ``kattn model-costs``; ``ratios``: of ``kattn benchmark``.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        costs: pd.DataFrame = NONE,
        races: pd.DataFrame = NONE,
        decoding: pd.DataFrame = NONE,
        models: pd.DataFrame = NONE,
        ratios: pd.DataFrame = NONE,
    ) -> None:
        self.runs, self.races, self.decoding, self.models, self.ratios = runs, races, decoding, models, ratios
        self.costs = completed(costs) if len(costs) else costs
        self.table = cache(self._table)

    @classmethod
    def of(cls, runs: Sequence[Run], tables: Iterable[tuple[str, pd.DataFrame]]) -> Evidence:
        """Return the evidence of runs and of ``tables`` with their kinds (``decoding``, say); others are left out."""
        kinds = ("complexity", "kernel-pca", "decoding", "models", "benchmark")
        known: dict[str, list[pd.DataFrame]] = {kind: [] for kind in kinds}
        for kind, table in tables:
            if kind in known:
                known[kind].append(completed(table) if kind == "complexity" else table)
        return cls(runs, *(pd.concat([NONE, *parts], ignore_index=True) for parts in known.values()))

    def manifest(self, folder: str) -> dict[str, Any]:
        """Return the manifest of the run in a folder, as the tables' ``folder`` has it."""
        return Run(Path(folder)).manifest

    def attention(self, folder: str) -> dict[str, Any]:
        """Return the attention of the recipe of the run in a folder; nothing without a recipe."""
        return dict(Run(Path(folder)).recipe.get("attention") or {})

    @cached_property
    def _of_sequences(self) -> dict[str, Run]:
        """Return the runs on sequences, by folder."""
        return {str(run.folder): run for run in self.runs if (run.folder / RECIPE).is_file() and is_sequence_run(run)}

    @cached_property
    def sequences(self) -> pd.DataFrame:
        """Return what :func:`~kattn_cli.papers.values.sequence_values` finds, and of each run ``model, place, tokens``.

        ``model``: the paper's, with what its ablations take from it; ``place``: in their grid; ``tokens``: of a
        sequence.
        """
        runs = self._of_sequences
        described = {one: sequence_run(run) for one, run in runs.items()}
        values = sequence_values(list(runs.values()), described)
        folder = shared_folder(run.label for run in self.runs)
        of_run: dict[str, dict[str, Any]] = {
            "label": {one: run.label.removeprefix(folder) for one, run in runs.items()},
            "model": {one: run.model for one, run in described.items()},
            "place": {one: run.place for one, run in described.items()},
            "tokens": {one: run.tokens for one, run in described.items()},
        }
        return values.assign(**{name: values["folder"].map(by_folder) for name, by_folder in of_run.items()})

    def _table(self, name: str) -> pd.DataFrame:
        if name == "corruption":
            return self._mean_errors()
        if name == "attacks":
            rows = attack_frame(self.runs, correct=True)
        else:
            rows = frame(self.runs, f"{name}.csv", correct=True)
        if name not in OF_IMAGES or rows.empty:
            return told_apart(rows)
        return rows[~rows["folder"].isin(list(self._of_sequences))]

    def labels(self, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield each label's rows of a table (``audit/alignment``, say)."""
        rows = self.table(name)
        if len(rows):
            for label, part in rows.groupby("label", sort=False):
                yield str(label), part

    def pairs(self, name: str, first: str, second: str) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
        """Yield labels whose recipe is called like ``first``, with the rows of ``second`` of their folder beside them.

        ``pairs("metrics", "scaled*", "softmax")`` gives ``audit/scaled`` and ``audit/scaled_matrix``, each with
        ``audit/softmax``. Both must have been run with the same overrides, but for those of ``attention``.
        """
        parts = dict(self.labels(name))
        for label, rows in parts.items():
            folder, own, rest = split_label(label)
            other = f"{folder}{second}{rest}"
            if fnmatchcase(own, first) and other != label and other in parts:
                yield label, rows, parts[other]

    def trained_with(self, name: str, label: str) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield the labels of a table that are of the folder of ``label``, itself among them, each with its rows."""
        folder, *_ = split_label(label)
        yield from ((other, rows) for other, rows in self.labels(name) if split_label(other)[0] == folder)

    def _mean_errors(self) -> pd.DataFrame:
        """Return the mean ``error`` over types and severities, in %, of how many ``images`` and ``types``."""
        of_type = ["corruption", "severity", "textures", "name"]
        of_run = ["label", "mechanism", "run_seed", "folder"]
        rows = [
            {
                **together[together["severity"] > 0].iloc[0][[*of_run, *settings(together, of_type)]],
                "types": len(errors),
                "error": errors.mean(),
            }
            for together, errors in errors_of_runs(self.table("eval"))
        ]
        return pd.DataFrame(rows)


def split_label(label: str) -> tuple[str, str, str]:
    """Return ``lra/small/listops/``, ``primal``, and what else was changed but the attention: `` train.epochs=3``."""
    recipe, _, changed = label.partition(" ")
    folder, slash, own = recipe.rpartition("/")
    kept = [one for one in changed.split(" ") if one and not one.startswith("attention.")]
    return folder + slash, own, "".join(f" {one}" for one in kept)


def by_seed(rows: pd.DataFrame, column: str) -> dict[int, float]:
    """Return the mean of a column for each seed, not a number where one of its rows is not."""
    return {int(str(seed)): float(part[column].mean(skipna=False)) for seed, part in rows.groupby("run_seed")}


def last(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each run's last epoch."""
    return rows[rows["epoch"] == rows.groupby("run_seed")["epoch"].transform("max")]


def first(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each run's first epoch."""
    return rows[rows["epoch"] == rows.groupby("run_seed")["epoch"].transform("min")]


def less(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    """Return the difference, paired by seed."""
    return {seed: value - other[seed] for seed, value in one.items() if seed in other}


def shown(values: dict[int, float], digits: int = 3) -> str:
    """Return the mean over the seeds that have a number, as text of a few digits."""
    known = [value for value in values.values() if math.isfinite(value)]
    return f"{sum(known) / len(known):.{digits}g}" if known else "no number"
