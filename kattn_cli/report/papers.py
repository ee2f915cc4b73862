"""A paper's part of the page: its tables with our numbers beside its own, and a verdict for each of its claims."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pandas as pd

from kattn_cli.papers.beside import beside
from kattn_cli.papers.paper import Paper
from kattn_cli.papers.text import Section, sections
from kattn_cli.papers.values import measured
from kattn_cli.papers.verdict import RULE, facts, measured_in_words, tally, tested, unmeasured, verdicts, words
from kattn_cli.report.page import TABLES, Block, Part, slug, unique
from kattn_cli.runs.run import Run
from kattn_cli.tables.text import Table, bullets, code, escaped, p_value


def beside_the_papers(runs: Sequence[Run], papers: Sequence[Paper]) -> list[tuple[pd.DataFrame, list[Section]]]:
    """Return for each paper the numbers of the runs beside its own, and its tables as text."""
    numbers = measured(runs)
    found = [(paper, beside(numbers, paper)) for paper in papers]
    return [(table, sections(table, paper)) for paper, table in found]


def claims_of(found: pd.DataFrame, paper: Paper) -> pd.DataFrame:
    """Return the paper's of all findings."""
    return found[found["paper"] == paper.title]


def numbers_of(paper: Paper) -> str:
    """Return the name of the CSV with all its numbers."""
    return f"{paper.name}-numbers"


def paper_part(paper: Paper, sections: Sequence[Section], claims: pd.DataFrame) -> Part:
    """Return the part of a page, from ``sections`` by :func:`beside_the_papers` and ``claims`` by :func:`claims_of`."""
    names: list[str] = []
    for section in sections:
        names.append(unique(f"{paper.name}-{slug(section.title.rpartition('paper, ')[2].partition(':')[0])}", names))
    parts = [_section(section, name) for section, name in zip(sections, names, strict=True)]
    known = (
        "What its tables and ours have in common. The word for a difference is by the rule of the claims below, but of "
        f"this one alone: not corrected for their number. All numbers: [CSV]({TABLES}/{numbers_of(paper)}.csv)"
    )
    blocks = [known] if parts else ["The runs have none of the numbers of its tables."]
    return Part(f"The {paper.method} paper", blocks, [*parts, _claims(paper, claims)])


def _section(section: Section, name: str) -> Part:
    blocks: list[Block] = [bullets(section.notes)] if section.notes else []
    caption = f"{section.title}; mean ± half of the 95 % Student-t interval over seeds."
    blocks.append(Table(name, caption, section.columns, section.rows, section.names))
    return Part(section.title, [*blocks, bullets(section.sentences)] if section.sentences else blocks)


def _claims(paper: Paper, found: pd.DataFrame) -> Part:
    blocks: list[Block] = [f"**{tally(found)[:1].upper()}{tally(found)[1:]}** {RULE}"]
    if len(judged := tested(found)):
        blocks += [_judged(paper, judged), _by_label(paper, judged)]
    if len(known := facts(found)):
        blocks.append(_facts(paper, known))
    if len(rest := unmeasured(found)):
        blocks += ["Not measured on these runs, with the rule and the command of each:", bullets(_rules(rest))]
    return Part("Claims", blocks)


def _judged(paper: Paper, measured: pd.DataFrame) -> Table:
    table = verdicts(measured)
    rows = [
        [row["claim"], words(row), _minus(row["ours"]), _minus(row["theirs"]), row["where"], row["class"],
         row["criterion"], row["command"]]
        for _, row in table.iterrows()
    ]  # fmt: skip
    columns = ["claim", "verdict", "ours", "the paper's", "where", "class", "rule", "command"]
    caption = f"{paper.method} paper, claims: the verdict on each, of all labels that it was measured on."
    return Table(f"{paper.name}-verdicts", caption, columns, rows, len(columns), data=table)


def _by_label(paper: Paper, measured: pd.DataFrame) -> Table:
    rows = [
        [
            *_of_label(row),
            p_value(float(row["p_holm"])),
            str(int(row["seeds"])),
            str(row["verdict"]),
            str(row["reason"]),
            str(row["beside"]),
        ]
        for _, row in measured.iterrows()
    ]
    columns = ["claim", "label", "measured, 95 %", "the paper's", "p (Holm)", "seeds", "verdict", "why", "beside"]
    caption = f"{paper.method} paper, claims by label, with 95 % intervals, which nothing corrects."
    return Table(f"{paper.name}-claims", caption, columns, rows, 2, ("verdict", "why", "beside"), data=measured)


def _facts(paper: Paper, known: pd.DataFrame) -> Table:
    rows = [
        [*_of_label(row), str(row["verdict"]), str(row["class"]), str(row["beside"]), str(row["criterion"])]
        for _, row in known.iterrows()
    ]
    columns = ["fact", "of", "number, range", "the paper's", "what the paper says is", "class", "beside", "rule"]
    caption = f"{paper.method} paper, facts: what is counted, or measured once on one machine, with its range."
    return Table(f"{paper.name}-facts", caption, columns, rows, 2, columns[4:], data=known)


def _of_label(row: pd.Series) -> list[str]:
    """Return claim, label, number and the paper's."""
    theirs = "" if math.isnan(row["paper_number"]) else _minus(f"{row['paper_number']:.3g}")
    return [str(row["claim"]), str(row["label"]), _minus(measured_in_words(row)), theirs]


def _rules(claims: pd.DataFrame) -> list[str]:
    rules = []
    for _, one in claims.iterrows():
        rule = one["criterion"][:1].upper() + one["criterion"][1:]
        rules.append(f"{escaped(one['claim'])} {escaped(rule)}. {code(one['command'])}")
    return rules


def _minus(text: str) -> str:
    """Return the text with a minus that is as wide as a plus."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "−", text)
