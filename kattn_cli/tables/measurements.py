"""What tells measurements of one name apart, in words, and the refusal to take one of several for the only one.

The identity of a row is :mod:`kattn_cli.runs.identity`'s. Rows of one table that are alike by what they are called, and
differ in a column of their identity, get what differs into their name; where one value is wanted and several fit, that
is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kattn_cli.errors import RunError
from kattn_cli.runs.identity import WEIGHTS, identity_columns
from kattn_cli.tables.text import listed

IMAGES = "images"
_LAST = (IMAGES,)
_WORDS = {"steps": "{:g} steps", "step_share": "step {:.3g}", "window": "windows of {:g}", IMAGES: "({:,.0f} images)"}


def settings(table: pd.DataFrame, but: Sequence[str] = ()) -> list[str]:
    """Return the columns of identity but for ``but`` and the weights' fingerprint, which every run has its own of."""
    return identity_columns(table.columns, (*but, WEIGHTS))


def apart(table: pd.DataFrame, alike: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return for each row what tells it from rows that have the same values of ``alike``, of ``columns`` alone.

    Such as ``40 steps``, ``step 0.1``, ``last`` (weights; nothing for the best), ``seed 1``, ``(200 images)`` for those
    of fewer than the most; in the order of ``columns``, images last. It is empty where nothing differs.
    """
    words: list[list[str]] = [[] for _ in range(len(table))]
    groups = table.groupby(list(alike), dropna=False, sort=False).ngroup() if alike else pd.Series(0, table.index)
    for column in sorted((one for one in columns if one in table), key=_LAST.__contains__):
        values = table[column].astype(object).where(table[column].notna(), "")
        several = values.astype(str).groupby(groups).transform("nunique") > 1
        most = table[IMAGES].groupby(groups).transform("max") if column == IMAGES else values
        for row, value, differs, greatest in zip(words, values, several, most, strict=True):
            if differs and (word := _word(column, value, greatest)):
                row.append(word)
    return [" ".join(row) for row in words]


def _word(column: str, value: object, most: object) -> str:
    if value == "" or (column == "checkpoint" and value == "best") or (column == IMAGES and value == most):
        return ""
    if column == "checkpoint":
        return str(value)
    if column in _WORDS:
        return _WORDS[column].format(value)
    return (
        f"{column.replace('_', ' ')} {value:g}" if isinstance(value, float) else f"{column.replace('_', ' ')} {value}"
    )


def of_one_checkpoint(table: pd.DataFrame) -> pd.DataFrame:
    """Return each run's rows of its ``best`` weights, or all of a run that has none of these."""
    if "checkpoint" not in table:
        return table
    best = table["checkpoint"] == "best"
    runs = table["folder"] if "folder" in table else pd.Series("", table.index)
    return table[best | ~best.groupby(runs).transform("any")]


def told_apart(table: pd.DataFrame, columns: Sequence[str] = ("checkpoint", "inputs", "split")) -> pd.DataFrame:
    """Return the rows, those of runs that were measured otherwise under labels that say so: ``softmax last``.

    For tables that are one measurement a run, in ``columns`` that are the same in all rows of it. Runs of one folder
    are told apart. Of weights that were kept along the way the run's chosen ones speak.
    """
    chosen = table[table["checkpoint"] != "kept"] if "checkpoint" in table else table
    if chosen.empty:
        return table
    of_runs = chosen.drop_duplicates("folder")
    of_runs = of_runs.assign(beside=of_runs["label"].str.partition(" ")[0].str.rpartition("/")[0])
    words = dict(zip(of_runs["folder"], apart(of_runs, ["beside"], columns), strict=True))
    labels = zip(table["label"], table["folder"], strict=True)
    return table.assign(label=[f"{label} {words.get(folder, '')}".rstrip() for label, folder in labels])


def require_one(table: pd.DataFrame, file: str, alike: Sequence[str], what: Sequence[str]) -> None:
    """Require that no two rows of a run have the same values of ``alike``.

    Args:
        file: of the run, which the message names.
        alike: columns; rows of one ``folder`` that share them must be one.
        what: columns whose values name the measurement in the message.

    Raises:
        RunError: if two do, in one line: where, which, in what they differ, and what to do.
    """
    table = table if "folder" in table else table.assign(folder="the run")
    twice = table[table.duplicated(["folder", *alike], keep=False)]
    if twice.empty:
        return
    one = twice.iloc[0]
    same = twice[(twice[["folder", *alike]].fillna("") == one[["folder", *alike]].fillna("")).all(axis=1)]
    differ = [column for column in settings(same, alike) if same[column].astype(str).nunique() > 1]
    named = " ".join(str(one[column]) for column in what if str(one[column]) not in ("", "nan"))
    values = [f"{column} ({listed(list(dict.fromkeys(same[column].astype(str))))})" for column in differ]
    raise RunError(
        f"{one['folder']}/{file}: has {named} {len(same)} times, which differ in {listed(values) or 'nothing'}, where "
        "one is compared; leave in the file the rows that count"
    )
