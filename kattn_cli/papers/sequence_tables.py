"""Our series, Long-Range Arena and language in the shape of the papers' tables, with their numbers beside ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import pandas as pd

from kattn_cli.papers.paper_rows import beside_the_paper, tables_of, unlike
from kattn_cli.papers.paper_sections import as_markdown
from kattn_cli.papers.published import PaperName, Published, numbers
from kattn_cli.papers.sequence_papers import ACCURACIES, PARTS, Part, own_setting
from kattn_cli.papers.sequence_runs import is_sequence_run, sequence_run
from kattn_cli.papers.sequence_sections import sequence_sections
from kattn_cli.papers.sequence_variants import grid_place, variant
from kattn_cli.runs.run import Run
from kattn_cli.tables.sequence_values import sequence_values

KEY = ["table", "row", "metric", "setting", "share"]
GRIDS = {"table9", "table10"}
"""Primal-Attention's tables of η and s, and of s, whose rows are ours with these."""


def sequence_tables(runs: Sequence[Run], paper: PaperName, only: Collection[str] = ()) -> pd.DataFrame:
    """One row for each number of the paper's tables that the runs have, and each label; runs on images have none.

    Columns: ``kind, table, row, metric, setting, share, label``, those of
    :func:`~kattn_cli.papers.paper_rows.beside_the_paper`, and ``differs``. Differences are from softmax attention, in
    the RPC paper from symmetric attention where there is some. ``setting`` says what was run, which need not be what
    the paper ran, and ``differs`` in what it is not; ``share`` is that of swapped words. Accuracies in %, times in s,
    memory in units of 2³⁰ bytes, losses in nats a token.

    Args:
        only: the paper's tables to keep; all where none is named.
    """
    of_folder = {str(run.folder): run for run in runs if is_sequence_run(run)}
    values = sequence_values(list(of_folder.values()))
    folders = dict(zip(values["label"], values["folder"], strict=True))
    described = {label: sequence_run(of_folder[folder]) for label, folder in folders.items()}
    models = {label: variant(of_folder[folder], described[label].model) for label, folder in folders.items()}
    places = {label: grid_place(of_folder[folder], models[label]) for label, folder in folders.items()}
    printed = numbers(paper)
    parts = []
    for part in PARTS[paper]:
        chosen = _placed(part, _rows_of(part, values, models, places), printed)
        if only:
            chosen = chosen[chosen["table"].isin(list(only))]
        if chosen.empty:
            continue
        lower = set(part.metrics) - set(ACCURACIES)
        compared = beside_the_paper(chosen, KEY, models, printed, partial(part.baselines, paper), lower)
        cells = zip(compared["row"], compared["label"], strict=True)
        differs = [unlike(described[label].facts, own_setting(paper, part.kind, row)) for row, label in cells]
        parts.append(compared.assign(kind=part.kind, differs=differs))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def markdown(tables: pd.DataFrame, paper: PaperName) -> str:
    """The tables of :func:`~kattn_cli.papers.sequence_sections.sequence_sections` in Markdown."""
    return as_markdown(sequence_sections(tables, paper))


def _rows_of(part: Part, values: pd.DataFrame, models: Mapping[str, str], places: Mapping[str, str]) -> pd.DataFrame:
    """The numbers of a table of ours, under the paper's names of its rows."""
    chosen = values[(values["kind"] == part.kind) & values["metric"].isin(part.metrics)]
    if part.rows:
        chosen = chosen.assign(row=chosen["row"].map(part.rows)).dropna(subset="row")
    if part.compared:
        chosen = _of_an_ablation(part, chosen, models)
    if GRIDS & {*part.tables}:
        told = [places[label] for label in chosen["label"]]
        for key in ("row", "setting"):
            chosen = chosen.assign(**{key: [f"{one} {at}" for one, at in zip(chosen[key], told, strict=True)]})
    return chosen.dropna(subset="value").copy()


def _of_an_ablation(part: Part, chosen: pd.DataFrame, models: Mapping[str, str]) -> pd.DataFrame:
    """Those of its models; nothing where it compares some and there is none to compare with."""
    of_label = chosen["label"].map(models)
    without = {base for bases in part.compared.values() for base in bases}
    return chosen[of_label.isin(list(part.compared))] if not without or without & {*of_label} else chosen.iloc[:0]


def _placed(part: Part, chosen: pd.DataFrame, printed: Published) -> pd.DataFrame:
    """With the paper's ``table`` of each number; of a grid, what the paper has alone."""
    tables = tables_of(part.tables, printed)
    other = "" if GRIDS & {*part.tables} else part.tables[0]
    places = zip(chosen["row"], chosen["metric"], strict=True)
    placed = chosen.assign(table=[tables.get(place, other) for place in places])
    return placed[placed["table"] != ""]
