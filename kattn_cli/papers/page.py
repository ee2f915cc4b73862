"""The page that says of each claim what was measured, with its interval and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from urllib.parse import quote

import pandas as pd

from kattn_cli.papers import PAPERS
from kattn_cli.papers.verdict import (
    NOT_MEASURED,
    RULE,
    facts,
    measured_in_words,
    tally,
    tested,
    unmeasured,
    verdicts,
    words,
)
from kattn_cli.tables.text import code, escaped

HEAD = "| claim | where | runs | measured, 95 % | the paper's | verdict | why | beside it |"
LINE = "| --- | --- | --- | --- | --- | --- | --- | --- |"
VERDICTS_HEAD = "| claim | where | verdict | labels | ours | the paper's |"
VERDICTS_LINE = "| --- | --- | --- | --- | --- | --- |"
FACTS_HEAD = "| fact | where | of | number, range | the paper's | what the paper says is | beside it |"
FACTS_LINE = "| --- | --- | --- | --- | --- | --- | --- |"


def page(found: pd.DataFrame, pictures: Sequence[str], command: str) -> str:
    """Return Markdown: a section for each paper, with the figures that its claims rest on.

    Args:
        found: by :func:`~kattn_cli.papers.verdict.findings`.
        pictures: paths of figures, as the page should name them.
        command: that wrote the page.
    """
    parts = [
        "# The audit of the kernel view",
        "",
        f"Written by {code(command)} from the tables of the runs; `claims.csv` beside it has the same rows. {RULE}",
        "",
        "The paper's number is its own, on its own data and at its own size, of the same comparison.",
        "",
        f"Claims: {tally(found)}",
    ]
    for paper in PAPERS.values():
        rows = found[found["paper"] == paper.title]
        parts += ["", f"## {paper.title}", "", *_verdicts(tested(rows)), *_facts(facts(rows))]
        if len(unmeasured(rows)) == len(rows):
            parts += ["None of its claims was measured on these runs."]
        parts += ["", "How each is measured, and by which command:", ""]
        parts += [_how(claim) for _, claim in rows.drop_duplicates(["claim", "where"]).iterrows()]
        shown = [path for path in pictures if path.rpartition("/")[2].startswith(paper.figures)]
        parts += [line for path in shown for line in ("", f"![{escaped(_name(path))}]({quote(path)})")]
    return "\n".join(parts) + "\n"


def _verdicts(measured: pd.DataFrame) -> list[str]:
    """Return a line for each claim that was measured."""
    if measured.empty:
        return []
    lines = [
        _line(row["claim"], row["where"], words(row), row["labels"], row["ours"], row["theirs"], bold=2)
        for _, row in verdicts(measured).iterrows()
    ]
    named = measured.duplicated(["claim", "where"])
    by_label = [_row(row, again) for (_, row), again in zip(measured.iterrows(), named, strict=True)]
    return [VERDICTS_HEAD, VERDICTS_LINE, *lines, "", "By label:", "", HEAD, LINE, *by_label]


def _facts(known: pd.DataFrame) -> list[str]:
    """Return a line for each label of what is counted, or measured once; the first of a claim names it."""
    if known.empty:
        return []
    named = known.duplicated(["claim", "where"])
    lines = [_fact(row, again) for (_, row), again in zip(known.iterrows(), named, strict=True)]
    return ["", "Facts, counted or measured once on one machine:", "", FACTS_HEAD, FACTS_LINE, *lines]


def _how(claim: pd.Series) -> str:
    criterion = claim["criterion"][:1].upper() + claim["criterion"][1:]
    missing = " (Not measured on these runs.)" if claim["verdict"] == NOT_MEASURED else ""
    return f"- {claim['claim']} {criterion}. ({claim['class']}) {code(claim['command'])}{missing}"


def _row(row: pd.Series, again: bool) -> str:
    return _line(*_of_label(row, again), row["verdict"], row["reason"], row["beside"], bold=5)


def _fact(row: pd.Series, again: bool) -> str:
    return _line(*_of_label(row, again), row["verdict"], row["beside"], bold=5)


def _of_label(row: pd.Series, again: bool) -> list[str]:
    """Return claim and place, where they were not named yet, label, number, and the paper's."""
    claim = ["", ""] if again else [row["claim"], row["where"]]
    theirs = "" if math.isnan(row["paper_number"]) else f"{row['paper_number']:.3g}"
    return [*claim, row["label"], measured_in_words(row), theirs]


def _line(*cells: object, bold: int) -> str:
    texts = [escaped(str(cell)) for cell in cells]
    return f"| {' | '.join([*texts[:bold], f'**{texts[bold]}**', *texts[bold + 1 :]])} |"


def _name(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].replace("_", " ")
