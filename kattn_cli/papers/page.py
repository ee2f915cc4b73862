"""The page that says of each claim what was measured, with its interval and the verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

import pandas as pd

from kattn_cli.papers import PAPERS
from kattn_cli.papers.claim import Verdict
from kattn_cli.papers.verdict import MIXED, RULE, measured_in_words, verdicts, words
from kattn_cli.tables.text import code, escaped

HEAD = "| claim | where | runs | measured, 95 % | the paper's | verdict | beside it |"
LINE = "| --- | --- | --- | --- | --- | --- | --- |"
VERDICTS_HEAD = "| claim | where | verdict | labels | ours | the paper's |"
VERDICTS_LINE = "| --- | --- | --- | --- | --- | --- |"


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
        _tally(found),
    ]
    for paper in PAPERS.values():
        rows = found[found["paper"] == paper.title]
        measured = rows[rows["verdict"] != Verdict.not_measured.value]
        parts += ["", f"## {paper.title}", "", *_verdicts(measured), *_table(measured)]
        parts += ["", "How each is measured, and by which command:", ""]
        parts += [_how(claim) for _, claim in rows.drop_duplicates(["claim", "where"]).iterrows()]
        shown = [path for path in pictures if path.rpartition("/")[2].startswith(paper.figures)]
        parts += [line for path in shown for line in ("", f"![{escaped(_name(path))}]({quote(path)})")]
    return "\n".join(parts) + "\n"


def _tally(found: pd.DataFrame) -> str:
    counts = Counter(verdicts(found)["verdict"])
    known = [Verdict.holds.value, Verdict.does_not_hold.value, MIXED, *(one.value for one in list(Verdict)[2:])]
    return f"Claims: {', '.join(f'{verdict} {counts[verdict]}' for verdict in known)}."


def _verdicts(measured: pd.DataFrame) -> list[str]:
    """Return a line for each claim that was measured."""
    if measured.empty:
        return []
    lines = [
        _line(row["claim"], row["where"], words(row), row["labels"], row["ours"], row["theirs"], bold=2)
        for _, row in verdicts(measured).iterrows()
    ]
    return [VERDICTS_HEAD, VERDICTS_LINE, *lines, "", "By label:", ""]


def _table(rows: pd.DataFrame) -> list[str]:
    """Return a line for each label; the first of a claim names it."""
    if rows.empty:
        return ["None of its claims was measured on these runs."]
    named = rows.duplicated(["claim", "where"])
    return [HEAD, LINE, *(_row(row, again) for (_, row), again in zip(rows.iterrows(), named, strict=True))]


def _how(claim: pd.Series) -> str:
    criterion = claim["criterion"][:1].upper() + claim["criterion"][1:]
    missing = " (Not measured on these runs.)" if claim["verdict"] == Verdict.not_measured.value else ""
    return f"- {claim['claim']} {criterion}. {code(claim['command'])}{missing}"


def _row(row: pd.Series, again: bool) -> str:
    claim = ["", ""] if again else [row["claim"], row["where"]]
    theirs = "" if math.isnan(row["paper_number"]) else f"{row['paper_number']:.3g}"
    return _line(*claim, row["label"], measured_in_words(row), theirs, row["verdict"], row["beside"], bold=5)


def _line(*cells: object, bold: int) -> str:
    texts = [escaped(str(cell)) for cell in cells]
    return f"| {' | '.join([*texts[:bold], f'**{texts[bold]}**', *texts[bold + 1 :]])} |"


def _name(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].replace("_", " ")
