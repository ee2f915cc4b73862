"""``kattn report``: one page from many runs and tables of costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from typing import Any

import pandas as pd

from kattn_cli.commands.report.files import write_page
from kattn_cli.commands.report.sources import CostTable, Sources
from kattn_cli.errors import RunError
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.paper import Paper
from kattn_cli.papers.verdict import findings, tally
from kattn_cli.report.cost import Flops, cost_part, cost_table_part
from kattn_cli.report.groups import Group, groups_of
from kattn_cli.report.page import Page, Part, Picture, slug, unique
from kattn_cli.report.papers import beside_the_papers, claims_of, numbers_of, paper_part
from kattn_cli.report.provenance import provenance_part
from kattn_cli.report.results import Comparison, compared_part, comparisons, results_part
from kattn_cli.report.settings import settings_part
from kattn_cli.report.summary import came_out, introduction
from kattn_cli.runs.provenance import as_typed
from kattn_cli.runs.run import FORWARD_FLOPS

TITLE = "Report"
Begin = Callable[..., Callable[[], Any]]
Drawn = Callable[[], Sequence[Picture]]
"""Waits for the pictures of a part of the page."""


def report(
    sources: Sources,
    output: Path,
    *,
    papers: Sequence[Paper] = (),
    title: str = TITLE,
    figures: bool = True,
) -> list[Path]:
    """Write ``report.md``, ``report.html``, and CSV, LaTeX and figures beside them; return the two pages.

    Raises:
        RunError: if nothing was measured, or a file cannot be written.
    """
    groups, papers = groups_of(sources.runs), list(dict.fromkeys(papers))
    if not sources.tables and not any(group.measured for group in groups):
        raise RunError("kattn report: nothing was measured in these runs; kattn eval and kattn attack measure them")
    stems: list[str] = []
    for cost in sources.tables:
        stems.append(unique(slug(cost.name), [*stems, *(group.slug for group in groups)]))
    with workers((len(groups) + len(stems)) * figures + bool(papers)) as begin:
        stemmed = list(zip(sources.tables, stems, strict=True))
        drawn, costs_drawn = _begin_drawing(begin, groups, stemmed, output) if figures else (repeat(list), repeat(list))
        described = [run for run in sources.runs if run.recipe]
        beside = begin(beside_the_papers, described, papers) if papers else list
        tables = [(cost.kind, cost.table) for cost in sources.tables]
        judged = findings(Evidence.of(sources.runs, tables)) if papers else pd.DataFrame()
        claims = {paper: claims_of(judged, paper) for paper in papers}
        found = {group.slug: comparisons(group) for group in groups}
        flops = _flops(groups)
        parts = [came_out(groups, found, {paper.method: tally(one) for paper, one in claims.items()})]
        for group, pictures in zip(groups, drawn, strict=False):
            parts.append(_group(group, found[group.slug], flops, pictures()))
        for (cost, stem), pictures in zip(stemmed, costs_drawn, strict=False):
            parts.append(cost_table_part(cost.kind, cost.name, stem, cost.table, pictures()))
        numbers = dict(zip(papers, beside(), strict=True))
    parts += [paper_part(paper, sections, claims[paper]) for paper, (_, sections) in numbers.items()]
    top = list(introduction(sources.runs, groups, as_typed(), sources.left_out))
    attached = {numbers_of(paper): table for paper, (table, _) in numbers.items() if len(table)}
    return write_page(Page(title, top, parts, attached), output)


def _begin_drawing(
    begin: Begin, groups: Sequence[Group], tables: Sequence[tuple[CostTable, str]], output: Path
) -> tuple[list[Drawn], list[Drawn]]:
    """Begin to draw each group, and each table under its stem."""
    from kattn_cli.commands.report.drawing import draw_group, draw_table

    drawn = [begin(draw_group, group, output) for group in groups]
    return drawn, [begin(draw_table, cost, stem, output) for cost, stem in tables]


def _group(group: Group, found: Sequence[Comparison], flops: dict[str, Flops], pictures: Sequence[Picture]) -> Part:
    own = {label: flops[f"{group.slug} {label}"] for label in group.labels}
    parts = [results_part(group), compared_part(group, found)]
    parts += [Part("Figures", pictures)] if pictures else []
    return Part(group.name, [], [*parts, cost_part(group, own), settings_part(group), provenance_part(group)])


def _flops(groups: Sequence[Group]) -> dict[str, Flops]:
    """Return operations by the group's slug and the label: as the manifest says, else counted, which takes torch."""
    runs = {f"{group.slug} {label}": runs[0] for group in groups for label, runs in group.by_label.items()}
    known = {name: run.manifest.get(FORWARD_FLOPS) for name, run in runs.items()}
    found = {name: Flops(float(count)) for name, count in known.items() if count is not None}
    if unknown := {name: run for name, run in runs.items() if name not in found}:
        from kattn_cli.commands.report.flops import forward_flops

        found |= forward_flops(unknown)
    return found


@contextmanager
def workers(count: int) -> Iterator[Begin]:
    """Yield a function that begins work in a process, and returns one that waits for its result.

    ``count``: of how many pieces the work is. One alone, or on one core, is done when its result is asked for.
    """
    most = min(count, cpu_count() or 1)
    if most < 2:
        yield partial
        return
    pool = ProcessPoolExecutor(most, mp_context=get_context("spawn"))
    try:
        yield lambda work, *given: pool.submit(work, *given).result
    finally:
        pool.shutdown(cancel_futures=True)
