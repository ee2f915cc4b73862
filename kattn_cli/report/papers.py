"""A paper's part of the page: its tables with our numbers beside its own, and a verdict for each of its claims."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from kattn_cli.papers.beside import beside
from kattn_cli.papers.claim import Verdict
from kattn_cli.papers.paper import Paper
from kattn_cli.papers.text import Section, sections
from kattn_cli.papers.values import measured
from kattn_cli.papers.verdict import RULE, measured_in_words, verdicts, words
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


def tally(found: pd.DataFrame) -> str:
    """Return how many claims came out how: ``holds 3, does not hold 1.``"""
    counts = Counter(verdicts(found)["verdict"]) if len(found) else Counter()
    return f"{', '.join(f'{word} {count}' for word, count in counts.most_common()) or 'none known'}."


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
        "What its tables and ours have in common. Of a difference, the word is by its own 95 % interval, which is not "
        f"corrected for the number of them. All numbers: [CSV]({TABLES}/{numbers_of(paper)}.csv)"
    )
    blocks = [known] if parts else ["The runs have none of the numbers of its tables."]
    return Part(f"The {paper.method} paper", blocks, [*parts, _claims(paper, claims)])


def _section(section: Section, name: str) -> Part:
    blocks: list[Block] = [bullets(section.notes)] if section.notes else []
    caption = f"{section.title}; mean ± half of the 95 % Student-t interval over seeds."
    blocks.append(Table(name, caption, section.columns, section.rows, section.names))
    return Part(section.title, [*blocks, bullets(section.sentences)] if section.sentences else blocks)


def _claims(paper: Paper, found: pd.DataFrame) -> Part:
    unmeasured = found["verdict"] == Verdict.not_measured.value
    measured, rest = found[~unmeasured], found[unmeasured].drop_duplicates(["claim", "where"])
    blocks: list[Block] = [f"**{tally(found)}** {RULE}"]
    if len(measured):
        blocks += [_judged(paper, measured), _by_label(paper, measured)]
    if len(rest):
        blocks += ["Not measured on these runs, with the rule and the command of each:", bullets(_rules(rest))]
    return Part("Claims", blocks)


def _judged(paper: Paper, measured: pd.DataFrame) -> Table:
    table = verdicts(measured)
    rows = [
        [row["claim"], words(row), _minus(row["ours"]), _minus(row["theirs"]), row["where"], row["criterion"],
         row["command"]]
        for _, row in table.iterrows()
    ]  # fmt: skip
    columns = ["claim", "verdict", "ours", "the paper's", "where", "rule", "command"]
    caption = f"{paper.method} paper, claims: the verdict on each, of all labels that it was measured on."
    return Table(f"{paper.name}-verdicts", caption, columns, rows, len(columns), data=table)


def _by_label(paper: Paper, measured: pd.DataFrame) -> Table:
    rows = [
        [
            str(row["claim"]),
            str(row["label"]),
            _minus(measured_in_words(row)),
            "" if math.isnan(row["paper_number"]) else _minus(f"{row['paper_number']:.3g}"),
            p_value(float(row["p_holm"])),
            str(int(row["seeds"])),
            str(row["verdict"]),
            str(row["beside"]),
        ]
        for _, row in measured.iterrows()
    ]
    columns = ["claim", "label", "measured, 95 %", "the paper's", "p (Holm)", "seeds", "verdict", "beside"]
    caption = f"{paper.method} paper, claims by label, with Student's 95 % intervals over seeds."
    return Table(f"{paper.name}-claims", caption, columns, rows, 2, ("verdict", "beside"), data=measured)


def _rules(claims: pd.DataFrame) -> list[str]:
    rules = []
    for _, one in claims.iterrows():
        rule = one["criterion"][:1].upper() + one["criterion"][1:]
        rules.append(f"{escaped(one['claim'])} {escaped(rule)}. {code(one['command'])}")
    return rules


def _minus(text: str) -> str:
    """Return the text with a minus that is as wide as a plus."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "−", text)
