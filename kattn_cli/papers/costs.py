"""What the papers print of whole models' costs, beside what was measured of ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pandas as pd

from kattn_cli.papers import PAPERS
from kattn_cli.papers.paper import Paper
from kattn_cli.tables.costs import model_baseline, model_ratios

QUANTITIES = ("time", "memory", "flops")
"""The quantities of which the papers print something."""


@dataclass(frozen=True)
class ModelCosts:
    """Where a paper prints the costs of whole models.

    Attributes:
        table: its table, in ``numbers.csv``.
        row: the table's row for models that read so many tokens.
        models: models as ``kattn model-costs`` calls them → the table's.
        metrics: quantity and pass (none where the paper does not say of which) → the table's metric and its unit.
        notes: quantity → what to know of the paper's numbers of it.
    """

    table: str
    row: Callable[[int], str]
    models: Mapping[str, str]
    metrics: Mapping[tuple[str, str], tuple[str, str]]
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cost:
    """A number of a paper and its unit."""

    paper: Paper
    value: float
    unit: str


def published_cost(model: str, what: str, n: int, quantity: str) -> Cost | None:
    """Return the number that a paper prints of a model; None where none does.

    Where the paper does not say of which pass or length (``n`` tokens), it is taken for any.
    """
    for paper in PAPERS.values():
        costs = paper.costs
        if costs and model in costs.models:
            metric, unit = costs.metrics.get((quantity, what)) or costs.metrics.get((quantity, "")) or ("", "")
            value = paper.number(costs.table, costs.row(n), metric, costs.models[model])
            return None if math.isnan(value) else Cost(paper, value, unit)
    return None


def beside_the_papers(costs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of :func:`~kattn_cli.tables.costs.model_ratios` beside what the papers print.

    Of the same model and pass, they print ``published_time``, ``published_memory`` and ``published_flops``, each with
    ``…_unit`` and ``…_ratio``, the multiple of the same paper's number of the model that ours is a multiple of. Nan
    where a paper has none.
    """
    table = model_ratios(costs)
    rows = [_published(row, model_baseline(table, row)) for _, row in table.iterrows()]
    return table.assign(**pd.DataFrame(rows, index=table.index))


def _published(row: pd.Series, base: pd.Series | None) -> dict[str, object]:
    found: dict[str, object] = {}
    for quantity in QUANTITIES:
        ours = published_cost(row["model"], row["pass"], row["n"], quantity)
        first = None if base is None else published_cost(base["model"], base["pass"], base["n"], quantity)
        comparable = ours is not None and first is not None and ours.paper == first.paper
        found[f"published_{quantity}"] = math.nan if ours is None else ours.value
        found[f"published_{quantity}_unit"] = "" if ours is None else ours.unit
        found[f"published_{quantity}_ratio"] = ours.value / first.value if comparable else math.nan  # type: ignore[union-attr]
    return found


def notes(table: pd.DataFrame) -> Iterator[str]:
    """Yield what to know of the papers' numbers that stand in a table of :func:`beside_the_papers`."""
    for paper in PAPERS.values():
        if costs := paper.costs:
            of_paper = table[table["model"].isin(list(costs.models))]
            yield from (note for quantity, note in costs.notes.items() if (of_paper[f"published_{quantity}"] > 0).any())
