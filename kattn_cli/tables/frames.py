"""The tables of several runs as one frame, each row labelled with its run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import StringIO
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from kattn_cli.console import console
from kattn_cli.runs.bits import CORRECT
from kattn_cli.runs.columns import needed_of
from kattn_cli.runs.csv_rows import parsed
from kattn_cli.runs.identity import DEFAULTS, OTHERWISE, WEIGHTS, identity
from kattn_cli.runs.run import Run, Snapshot
from kattn_cli.runs.weights import fingerprints_now, has_still
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.tables.attack_names import named, with_step_share
from kattn_cli.tables.corruption_errors import errors_by_type, measured_together
from kattn_cli.tables.measurements import IMAGES, apart, settings

KEPT = "kept"
"""What the column ``checkpoint`` says of weights that were kept along the way and not chosen."""


def shared_folder(labels: Iterable[str]) -> str:
    """Return ``quickstart/`` where every label begins with it, else nothing."""
    folders = {label.partition(" ")[0].rpartition("/")[0] for label in labels}
    return f"{folders.pop()}/" if len(folders) == 1 and "" not in folders else ""


def frame(
    runs: Iterable[Run], table: str, *, run_as: str = "", gradient_as: str = "", correct: bool = False
) -> pd.DataFrame:
    """Return all rows of ``table`` (``metrics.csv``, say) with ``label``, ``mechanism``, ``run_seed`` and ``folder``.

    Labels lose the folder that all of them share. Of several runs with one label and seed, the newest counts. Rows
    that were measured on weights which the run no longer has are left out; once a file that is said of those that were
    not measured again.

    Args:
        run_as, gradient_as: the recipes whose attention the weights were run as, and attacked through; by default only
            rows of the runs' own attention are returned.
        correct: whether to have the column of which images were right, too; see :mod:`kattn_cli.tables.bits`.

    Raises:
        RunError: if one cannot be read, or is damaged.
    """
    seen = sorted(map(Snapshot.of, runs), key=lambda run: str(run.manifest.get("start") or ""))
    newest = {(run.label, run.seed): run for run in seen}
    folder = shared_folder(label for label, _ in newest)
    rows = _rows(list(newest.values()), table)
    for column, wanted in zip(OTHERWISE, (run_as, gradient_as), strict=True):
        named = rows.pop(column).fillna("") if column in rows else pd.Series("", rows.index)
        rows = rows[named == wanted]
    if rows.empty:
        return pd.DataFrame()
    rows = rows.reset_index(drop=True)
    if not correct:
        rows = rows.drop(columns=CORRECT, errors="ignore")
    of_runs = [
        (label.removeprefix(folder), run.manifest.get("mechanism", label), seed, str(run.folder))
        for (label, seed), run in newest.items()
    ]
    columns = pd.DataFrame(of_runs, columns=["label", "mechanism", "run_seed", "folder"])
    return rows.drop(columns=_RUN).assign(**columns.iloc[rows[_RUN]].set_axis(rows.index))


_RUN = "place of the run"


def _rows(runs: Sequence[Snapshot], table: str) -> pd.DataFrame:
    """Return the rows of the runs' files, in this order, with the place of each row's run among them.

    Files with the same columns are parsed as one: a frame for each of many files would take a hundred times as long.
    """
    alike: dict[tuple[str, ...], dict[int, list[list[str]]]] = {}
    for place, run in enumerate(runs):
        if len(records := run.records(table)) > 1:
            alike.setdefault(tuple(records[0]), {})[place] = records[1:]
    parts = []
    for columns, by_place in alike.items():
        text = StringIO()
        csv.writer(text).writerows([columns, *chain.from_iterable(by_place.values())])
        text.seek(0)
        rows = parsed(text, needed_of(Path(table)))
        rows[_RUN] = np.repeat(list(by_place), list(map(len, by_place.values())))
        parts.append(_of_their_weights(rows, runs, table))
    together = pd.concat(parts) if parts else pd.DataFrame(columns=[_RUN])
    return together.sort_values(_RUN, kind="stable", ignore_index=True)


def _of_their_weights(rows: pd.DataFrame, runs: Sequence[Snapshot], table: str) -> pd.DataFrame:
    """Return the rows that were measured on weights which their run still has."""
    if not {"checkpoint", WEIGHTS} <= set(rows):
        return rows
    columns = rows[[one for one in ("checkpoint", WEIGHTS, "epoch") if one in rows]]
    named = columns.astype(object).where(columns.notna(), "").to_dict("records")
    now: list[str] = []
    still: list[bool] = []
    for place, count in zip(*np.unique(rows[_RUN], return_counts=True), strict=True):
        run, own = runs[place], slice(len(still), len(still) + count)
        now += fingerprints_now(run.folder, named[own])
        still += has_still(run.folder, named[own])
        if lost := _lost(rows[own], still[own]) if not all(still[own]) else 0:
            _say_left_out(run.folder / table, lost)
    today = pd.Series(now, rows.index, dtype=object)
    return rows.assign(**{WEIGHTS: rows[WEIGHTS].where(rows[WEIGHTS].isna(), today)})[still]


def _lost(rows: pd.DataFrame, still: Sequence[bool]) -> int:
    """Return how many rows of a run were measured on other weights, and not again on those that it has."""
    every = [
        {**identity({str(column): value for column, value in row.items()}), WEIGHTS: ""}
        for row in rows.drop(columns=_RUN).to_dict("records")
    ]
    known = [one for one, ours in zip(every, still, strict=True) if ours]
    return sum(one not in known for one, ours in zip(every, still, strict=True) if not ours)


@cache
def _say_left_out(path: Path, count: int) -> None:
    rows = f"{count} row{' was' if count == 1 else 's were'} measured on weights that the run no longer has, and"
    console.print(f"{path}: {rows} left out; measure again to have their like of its weights now")


def attack_frame(
    runs: Iterable[Run], run_as: str = "", gradient_as: str = "", *, correct: bool = False
) -> pd.DataFrame:
    """Return the rows of ``attacks.csv``, one for each label, seed and measurement.

    Of several that differ in their images alone, that of the most counts: a quick look with ``--limit`` never mixes
    with the whole test set. ``name`` is what the measurement is called, no two alike; ``step_share`` is there in place
    of ``step_size``.

    Args:
        run_as, gradient_as, correct: see :func:`frame`.
    """
    table = frame(runs, "attacks.csv", correct=correct, run_as=run_as, gradient_as=gradient_as)
    if table.empty:
        return table
    for column in ("norm", "epsilon_units", "steps", "restarts", "targeted"):
        value = DEFAULTS[column]
        table[column] = table[column].where(table[column].notna(), value) if column in table else value
    table = with_step_share(table)
    by_images = table.sort_values(IMAGES, kind="stable")
    most = by_images.drop_duplicates(["label", "run_seed", *settings(table, [IMAGES])], keep="last")
    return named(most.sort_index())


def clean_where_attacked(attacked: pd.DataFrame) -> pd.DataFrame:
    """Return the clean accuracy that goes with attacks, as ``top1``: of each run, its most images, for each weights.

    ``name`` is ``clean``, with what differs between the rows: ``clean last``, ``clean (200 images)``. They have no
    interval of their own.

    Args:
        attacked: by :func:`attack_frame`.
    """
    ordered = attacked.sort_values(IMAGES, kind="stable")
    weights = [one for one in ("checkpoint",) if one in ordered]
    clean = ordered.drop_duplicates(["label", "run_seed", *weights], keep="last")
    differing = apart(clean, [], [*weights, IMAGES])
    names = [f"clean {words}".rstrip() for words in differing]
    return clean.assign(name=names, top1=clean["clean_top1"]).drop(columns=["top1_low", "top1_high"], errors="ignore")


def chosen_weights(table: pd.DataFrame) -> pd.DataFrame:
    """Return each run's rows of one moment of its training.

    Where there is a ``checkpoint``, of the chosen weights, which is all but ``kept``; else of the last ``epoch``; all
    rows of tables (or runs) that have neither.
    """
    if "checkpoint" in table:
        return table[table["checkpoint"] != KEPT]
    if "epoch" not in table:
        return table
    epochs = table["epoch"].fillna(-1)
    return table[epochs == epochs.groupby([table["label"], table["run_seed"]]).transform("max")]


def shared_epochs(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of epochs that all seeds of a label have, so that no mean along epochs changes its seeds."""
    if "epoch" not in table:
        return table.iloc[:0]
    seeds = table.groupby("label")["run_seed"].transform("nunique")
    return table[table.groupby(["label", "epoch"])["run_seed"].transform("nunique") == seeds]


def seeds_caption(data: pd.DataFrame) -> str:
    """Return ``softmax: seeds 0, 1, 2; rpc: seeds 0, 1``, or the seeds once where all labels share them."""
    seeds = {
        str(label): ", ".join(map(str, sorted(part["run_seed"].unique()))) for label, part in data.groupby("label")
    }
    if len(set(seeds.values())) == 1:
        return f"{', '.join(seeds)}; seeds {next(iter(seeds.values()))}"
    return "; ".join(f"{label}: seeds {which}" for label, which in seeds.items())


def over_seeds(data: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Return the mean of ``column`` over seeds for each group, with ``low`` and ``high`` of its 95 % interval.

    A single seed has no such interval: ``low`` and ``high`` are then the row's own where it has them
    (``top1_low``), else the value.
    """
    rows = []
    for key, part in data.groupby(list(by), sort=True):
        mean, half = mean_interval(part[column].tolist())
        low, high = mean - half, mean + half
        if len(part) == 1:
            low, high = (float(part.get(f"{column}_{side}", part[column]).iloc[0]) for side in ("low", "high"))
        rows.append({**dict(zip(by, key, strict=True)), "mean": mean, "low": low, "high": high, "seeds": len(part)})
    return pd.DataFrame(rows)


def clean_rows(evaluated: pd.DataFrame) -> pd.DataFrame:
    """Return those rows of ``eval.csv`` that are of the test set without corruption."""
    uncorrupted = evaluated["severity"] == 0 if "severity" in evaluated else True
    return evaluated[(evaluated["split"] == "test") & uncorrupted]


def errors_of_runs(evaluated: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, pd.Series]]:
    """Yield each run's rows that were measured together under corruption, and its error of each type in %.

    Runs of which no type was measured at all severities are left out.
    """
    if "corruption" not in evaluated:
        return
    corrupted = evaluated["corruption"].notna() & (evaluated["corruption"] != "")
    some = corrupted.groupby([evaluated["label"], evaluated["run_seed"]]).transform("any")
    for _, part in evaluated[some].groupby(["label", "run_seed"], sort=False):
        together = measured_together(part)
        if len(together) and len(errors := errors_by_type(together)):
            yield together, errors
