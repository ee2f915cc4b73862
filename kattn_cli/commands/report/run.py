"""``kattn report``: one page from many runs and tables of costs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from typing import Any

import pandas as pd

from kattn_cli.commands.report.files import draw_group, draw_table, write_page
from kattn_cli.commands.report.sources import Sources
from kattn_cli.costs.flops import model_flops_of
from kattn_cli.errors import DataError, KattnError, RunError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.build import build, outline
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.paper import Paper
from kattn_cli.papers.verdict import findings
from kattn_cli.recipe.schema import Recipe
from kattn_cli.report.cost import Flops, cost_part, cost_table_part
from kattn_cli.report.groups import Group, groups_of
from kattn_cli.report.page import Page, Part, Picture, slug, unique
from kattn_cli.report.papers import beside_the_papers, claims_of, numbers_of, paper_part, tally
from kattn_cli.report.provenance import provenance_part
from kattn_cli.report.results import Comparison, comparisons, paired_part, results_part
from kattn_cli.report.settings import settings_part
from kattn_cli.report.summary import came_out, introduction
from kattn_cli.runs.run import RECIPE, Run
from kattn_cli.tables.comparison import TestName

TITLE = "Report"
Begin = Callable[..., Callable[[], Any]]


def report(
    sources: Sources,
    output: Path,
    *,
    papers: Sequence[Paper] = (),
    title: str = TITLE,
    test: TestName = "t",
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
        draw: Begin = begin if figures else _nothing
        drawn = [draw(draw_group, group, output) for group in groups]
        costs_drawn = [draw(draw_table, cost, stem, output) for cost, stem in zip(sources.tables, stems, strict=True)]
        described = [run for run in sources.runs if run.recipe]
        beside = begin(beside_the_papers, described, papers) if papers else list
        tables = [(cost.kind, cost.table) for cost in sources.tables]
        judged = findings(Evidence.of(sources.runs, tables)) if papers else pd.DataFrame()
        claims = {paper: claims_of(judged, paper) for paper in papers}
        found = {group.slug: comparisons(group, test) for group in groups}
        flops = _flops(groups)
        parts = [came_out(groups, found, test, {paper.method: tally(one) for paper, one in claims.items()})]
        for group, pictures in zip(groups, drawn, strict=True):
            parts.append(_group(group, found[group.slug], flops, test, pictures()))
        for cost, stem, pictures in zip(sources.tables, stems, costs_drawn, strict=True):
            parts.append(cost_table_part(cost.kind, cost.name, stem, cost.table, pictures()))
        numbers = dict(zip(papers, beside(), strict=True))
    parts += [paper_part(paper, sections, claims[paper]) for paper, (_, sections) in numbers.items()]
    top = list(introduction(sources.runs, groups, shlex.join(["kattn", *sys.argv[1:]]), sources.left_out))
    attached = {numbers_of(paper): table for paper, (table, _) in numbers.items() if len(table)}
    return write_page(Page(title, top, parts, attached), output)


def _nothing(*_: object) -> type[list[Picture]]:
    """Stand in the place of work that is not to be done."""
    return list


def _group(
    group: Group, found: Sequence[Comparison], flops: dict[str, Flops], test: TestName, pictures: Sequence[Picture]
) -> Part:
    own = {label: flops[f"{group.slug} {label}"] for label in group.labels}
    parts = [results_part(group, test), paired_part(group, found, test)]
    parts += [Part("Figures", pictures)] if pictures else []
    return Part(group.name, [], [*parts, cost_part(group, own), settings_part(group), provenance_part(group)])


def _flops(groups: Sequence[Group]) -> dict[str, Flops]:
    """Return operations by the group's slug and the label."""
    return forward_flops(
        {f"{group.slug} {label}": runs[0] for group in groups for label, runs in group.by_label.items()}
    )


def forward_flops(runs: Mapping[str, Run]) -> dict[str, Flops]:
    """Return operations of one sample of each run, under the same names; or why a recipe cannot be built here.

    Equal models on equal data are counted once.
    """
    counted: dict[str, Flops] = {}
    found = {}
    for name, run in runs.items():
        path = run.folder / RECIPE
        try:
            if not path.is_file():
                raise DataError("there is no recipe")
            recipe = recipes.load(path, weights=False, data=False)
            key = recipe.model_dump_json(include={"data", "model", "attention"})
            if key not in counted:
                counted[key] = _count(recipe, run.folder)
            found[name] = counted[key]
        except KattnError as error:
            found[name] = Flops(why_not=_why(error, path))
    return found


def _count(recipe: Recipe, folder: Path) -> Flops:
    data = outline(recipe, folder)

    def sample() -> Any:
        return data.sample(1, "meta")

    return Flops(float(model_flops_of(lambda: build(recipe, data), sample).flops))


def _why(error: KattnError, path: Path) -> str:
    """Return the first line of an error, without the recipe's path."""
    return " ".join(str(error).splitlines()[:1]).removeprefix(f"{path}: ")


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
