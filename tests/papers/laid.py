"""Runs laid beside a paper, by its name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from kattn_cli.papers import PAPERS
from kattn_cli.papers.beside import beside
from kattn_cli.papers.text import Section, as_markdown, sections
from kattn_cli.papers.values import measured
from kattn_cli.runs.run import Run


def laid(runs: Sequence[Run], paper: str, tables: Collection[str] = ()) -> pd.DataFrame:
    return beside(measured(runs), PAPERS[paper], tables)


def sections_of(numbers: pd.DataFrame, paper: str) -> list[Section]:
    return sections(numbers, PAPERS[paper])


def markdown(numbers: pd.DataFrame, paper: str) -> str:
    return as_markdown(sections_of(numbers, paper))
