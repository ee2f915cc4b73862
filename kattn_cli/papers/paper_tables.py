"""Our images in the shape of the papers' tables, with their numbers beside ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pandas as pd

from kattn_cli.papers.image_papers import IMAGE_PARTS
from kattn_cli.papers.image_part import ImagePart
from kattn_cli.papers.image_runs import ImageRun, image_run
from kattn_cli.papers.image_sections import LOWER_IS_BETTER, image_sections
from kattn_cli.papers.paper_rows import beside_the_paper, tables_of, unlike
from kattn_cli.papers.paper_sections import as_markdown
from kattn_cli.papers.published import PaperName, numbers
from kattn_cli.runs.run import Run
from kattn_cli.tables.image_values import image_values

KEY = ["table", "row", "metric", "setting", "measured"]


def paper_tables(runs: Sequence[Run], paper: PaperName, only: Collection[str] = ()) -> pd.DataFrame:
    """One row for each number of the paper's tables that the runs have, and each label.

    Columns: ``table, row, metric, setting, measured, label``, those of
    :func:`~kattn_cli.papers.paper_rows.beside_the_paper`, and ``differs``. ``row`` is the paper's, or the nearest that
    it has; ``setting`` says what was run in its place, ``measured`` how (``pgd 6/255``), ``differs`` in what it is not
    the paper's. Differences are from the paper's baseline in the same setting. Accuracies in %, times in s, memory in
    units of 2³⁰ bytes.

    Args:
        runs: on images.
        only: the paper's tables to keep; all where none is named.
    """
    images = {str(run.folder): run for run in runs}
    parts = [part for part in IMAGE_PARTS[paper] if not only or {*only} & {*part.tables}]
    values = image_values(runs, {kind for part in parts for kind in part.kinds})
    folders = dict(zip(values["label"], values["folder"], strict=True))
    described = {label: image_run(images[folder]) for label, folder in folders.items()}
    tables = [_table(part, values, described, paper, only) for part in parts]
    found = [table for table in tables if len(table)]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def markdown(tables: pd.DataFrame, paper: PaperName) -> str:
    """The tables of :func:`~kattn_cli.papers.image_sections.image_sections` in Markdown."""
    return as_markdown(image_sections(tables, paper))


def _table(
    part: ImagePart, values: pd.DataFrame, described: Mapping[str, ImageRun], paper: PaperName, only: Collection[str]
) -> pd.DataFrame:
    printed = numbers(paper)
    models = {label: model for label, run in described.items() if (model := part.model(run)) is not None}
    if not part.worth(models.values()):
        return pd.DataFrame()
    chosen = _chosen(part, values, models)
    rows = [
        part.row(described[one["label"]], str(one["kind"]), str(one["row"]))
        for one in chosen[["label", "kind", "row"]].to_dict("records")
    ]
    tables = tables_of(part.tables, printed)
    places = zip(rows, chosen["metric"], strict=True)
    chosen = chosen.assign(
        row=rows,
        table=[tables.get(place, part.tables[0]) for place in places],
        setting=[described[label].setting() for label in chosen["label"]],
    )
    if only:
        chosen = chosen[chosen["table"].isin(list(only))]
    if chosen.empty:
        return chosen
    compared = beside_the_paper(chosen, KEY, models, printed, part.baselines, LOWER_IS_BETTER)
    cells = zip(compared["row"], compared["label"], compared["model"], strict=True)
    differs = [unlike(described[label].facts, part.own(model, row)) for row, label, model in cells]
    return compared.assign(differs=differs)


def _chosen(part: ImagePart, values: pd.DataFrame, models: Mapping[str, str]) -> pd.DataFrame:
    """What belongs to the table; costs of runs alone whose accuracy does, too."""
    wanted = {(kind, metric) for kind, metrics in part.kinds.items() for metric in metrics}
    places = pd.Series(list(zip(values["kind"], values["metric"], strict=True)), index=values.index, dtype=object)
    chosen = values[places.isin(list(wanted)) & values["label"].isin(list(models))]
    if part.rows:
        chosen = chosen[chosen["row"].isin(part.rows)]
    measured = chosen.loc[chosen["kind"] != "costs", "folder"]
    return chosen[chosen["folder"].isin(measured)]
