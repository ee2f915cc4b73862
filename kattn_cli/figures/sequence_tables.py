"""Our series, Long-Range Arena and language in the shape of the papers' tables, with their numbers beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from kattn_cli.figures.paper_rows import beside_the_paper
from kattn_cli.figures.paper_sections import as_markdown
from kattn_cli.figures.sequence_papers import ACCURACIES, PARTS, PaperName, Part, baselines, own_setting, published
from kattn_cli.figures.sequence_runs import SequenceRun, is_sequence_run, sequence_run
from kattn_cli.figures.sequence_sections import sequence_sections
from kattn_cli.figures.sequence_values import sequence_values
from kattn_cli.results import Run

KEY = ["table", "row", "metric", "setting", "share"]


def sequence_tables(runs: Sequence[Run], paper: PaperName) -> pd.DataFrame:
    """One row for each number of the paper's tables that the runs have, and each label; runs on images have none.

    Columns: ``kind, table, row, metric, setting, share, label``, those of
    :func:`~kattn_cli.figures.paper_rows.beside_the_paper`, and ``differs``. Differences are from softmax attention, in
    the RPC paper from symmetric attention where there is some. ``setting`` says what was run, which need not be what
    the paper ran, and ``differs`` in what it is not; ``share`` is that of swapped words. Accuracies in %, times in s,
    memory in units of 2³⁰ bytes, losses in nats a token.
    """
    of_folder = {str(run.folder): run for run in runs if is_sequence_run(run)}
    values = sequence_values(list(of_folder.values()))
    folders = dict(zip(values["label"], values["folder"], strict=True))
    described = {label: sequence_run(of_folder[folder]) for label, folder in folders.items()}
    models = {label: run.model for label, run in described.items()}
    numbers = published(paper)
    tables = {(row, metric): table for table, row, metric, _ in numbers}
    parts = []
    for part in PARTS[paper]:
        chosen = _rows_of(part, values)
        places = zip(chosen["row"], chosen["metric"], strict=True)
        chosen["table"] = [tables.get(place, part.table) for place in places]
        lower_is_better = set(part.metrics) - set(ACCURACIES)
        compared = beside_the_paper(
            chosen, KEY, models, numbers, lambda model: baselines(paper, model), lower_is_better
        ).assign(kind=part.kind)
        if len(compared):
            cells = zip(compared["row"], compared["label"], strict=True)
            compared["differs"] = [
                _differs(described[label], own_setting(paper, part.kind, row)) for row, label in cells
            ]
            parts.append(compared)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def markdown(tables: pd.DataFrame, paper: PaperName) -> str:
    """The tables of :func:`~kattn_cli.figures.sequence_sections.sequence_sections` in Markdown."""
    return as_markdown(sequence_sections(tables, paper))


def _rows_of(part: Part, values: pd.DataFrame) -> pd.DataFrame:
    """The numbers of a table of ours, under the paper's names of its rows."""
    chosen = values[(values["kind"] == part.kind) & values["metric"].isin(part.metrics)]
    if part.rows:
        chosen = chosen.assign(row=chosen["row"].map(part.rows)).dropna(subset="row")
    return chosen.dropna(subset="value").copy()


def _differs(run: SequenceRun, paper: Mapping[str, str]) -> str:
    """``up to 128 tokens (the paper: up to 2,000 tokens); cpu (the paper: one V100)``, of what both say."""
    pairs = [(run.facts[key], theirs) for key, theirs in paper.items() if key in run.facts]
    return "; ".join(f"{ours} (the paper: {theirs})" for ours, theirs in pairs if ours != theirs)
