"""What the papers print, compared as our numbers are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kattn_cli.papers.published import PaperName, numbers


def printed(paper: PaperName, table: str, row: str, metric: str, model: str) -> float:
    """One number of a paper's table; nan where it has none."""
    return numbers(paper).get((table, row, metric, model), math.nan)


def difference(paper: PaperName, table: str, row: str, metric: str, models: Sequence[str]) -> float:
    """The first model's number less the second's."""
    ours, base = (printed(paper, table, row, metric, model) for model in models)
    return ours - base


def difference_of_rows(paper: PaperName, table: str, rows: Sequence[str], metric: str, model: str) -> float:
    """One model's number in the first row less that in the second."""
    ours, base = (printed(paper, table, row, metric, model) for row in rows)
    return ours - base


def ratio(paper: PaperName, table: str, row: str, metric: str, models: Sequence[str]) -> float:
    """The first model's number over the second's."""
    ours, base = (printed(paper, table, row, metric, model) for model in models)
    return ours / base
