"""One page with a line of verdict for each question, and the same lines printed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from kattn_cli.commands.judge.battery import BASELINE, CANDIDATE
from kattn_cli.commands.judge.candidate import Candidate
from kattn_cli.commands.judge.probes.finding import Finding
from kattn_cli.figures.study import draw_effects
from kattn_cli.runs.whole_file import write_text
from kattn_cli.statistics.verdict import Verdict
from kattn_cli.studies.answer import Answer
from kattn_cli.studies.judgement import Judged
from kattn_cli.tables.text import code, counted, escaped, listed, markdown_table, write_frame

PAGE, TABLE = "judge.md", "judge.csv"
Line = tuple[str, str, str]
"""Verdict, question and the numbers that it rests on."""


@dataclass(frozen=True)
class Judgement:
    """All that came out. ``pages``: of the studies, where each stands; ``left_out``: what was not measured, and why."""

    candidate: Candidate
    findings: Sequence[Finding]
    answers: Sequence[Answer]
    pages: Sequence[Path]
    costs: pd.DataFrame
    left_out: str
    seconds: float

    def lines(self) -> list[Line]:
        """Return a line for each question: probes, comparisons with softmax attention, facts."""
        return [*self.probes(), *self.comparisons(), *self.facts()]

    def probes(self) -> list[Line]:
        """Return what the probes say."""
        return [(one.word, one.question, one.evidence) for one in self.findings]

    def comparisons(self) -> list[Line]:
        """Return the verdict on each primary comparison."""
        return [
            (one.decision.verdict.value, f"{one.measure} against {one.comparison.second}", one.decision.sentence)
            for one in self.primary
        ]

    def facts(self) -> list[Line]:
        """Return parameters, time and memory, and what was not measured."""
        found: list[Line] = [("told", "parameters", _parameters(self.answers))]
        own = self.costs[self.costs["attention"] == self.candidate.label]
        for _, row in own.iterrows():
            size = f"a training step at N = {row['N']} takes"
            beside = f"{row['time / softmax']} times softmax's"
            found.append(("told", "time over N", f"{size} {row['ms']} ms, {beside}; it grows as N^{row['time in N']}"))
            found.append(("told", "memory over N", f"{size} {row['MiB']} MiB; it grows as N^{row['memory in N']}"))
        if own.empty:
            found.append(("not asked", "time and memory over N", "it failed at every N; see the table of costs"))
        if self.left_out:
            question, _, why = self.left_out.partition(": ")
            found.append(("not asked", question, why))
        return found

    @property
    def primary(self) -> list[Judged]:
        """Return the comparisons with softmax attention."""
        return [one for answer in self.answers for one in answer.primary]

    def summary(self) -> str:
        """Return the whole in one sentence."""
        wrong = [one.question for one in self.findings if one.word == "found"]
        told = [one for one in self.primary if one.decision.verdict in (Verdict.better, Verdict.worse)]
        parts = [f"found out: {listed(wrong)}" if wrong else "no probe finds anything"]
        for verdict in (Verdict.better, Verdict.worse, Verdict.equivalent, Verdict.undecided):
            measures = [one.measure for one in self.primary if one.decision.verdict is verdict]
            if measures:
                parts.append(f"{verdict.value}: {listed(measures)}")
        if not any(one.decision.question.decidable for one in self.primary):
            parts.append("too few seeds to decide anything")
        elif not told:
            parts.append(f"nothing tells it apart from {BASELINE}")
        return "; ".join(parts) + "."


def write_page(judgement: Judgement, folder: Path, command: str) -> Path:
    """Write ``judge.md``, ``judge.csv`` and the figure into a folder, and return the page.

    Raises:
        RunError: if one cannot be written.
    """
    rows = pd.DataFrame(judgement.lines(), columns=["verdict", "question", "evidence"])
    write_frame(folder / TABLE, rows)
    verdicts = pd.concat([pd.DataFrame(one.verdicts()) for one in judgement.answers], ignore_index=True)
    primary = verdicts[verdicts["primary"]] if len(verdicts) else verdicts
    figure = draw_effects(primary, judgement.answers[0].study.level, folder) if len(primary) else None
    write_text(folder / PAGE, page(judgement, figure, folder, command))
    return folder / PAGE


def page(judgement: Judgement, figure: Path | None, folder: Path, command: str) -> str:
    """Return the page as Markdown."""
    seeds = max((len(seeds) for answer in judgement.answers for seeds in answer.runs.values()), default=0)
    parts = [
        f"# {escaped(judgement.candidate.name)}, judged",
        escaped(judgement.summary()[0].upper() + judgement.summary()[1:]),
        f"{counted(seeds, 'seed')}; {judgement.seconds / 60:.1f} minutes this time. Written by {code(command)}.",
    ]
    titles = {
        "What it is": (judgement.probes(), "Asked of the mechanism alone, and of the trained models under attack."),
        "Against softmax attention": (
            judgement.comparisons(),
            "Margins were written down before anything was measured; p-values are corrected within each study.",
        ),
        "Facts": (judgement.facts(), "Judged by nobody."),
    }
    for title, (lines, about) in titles.items():
        parts += [f"## {title}", about]
        cells = [[f"**{escaped(verdict)}**", escaped(asked), escaped(evidence)] for verdict, asked, evidence in lines]
        parts.append(markdown_table(["verdict", "question", "what it rests on"], cells, {0, 1, 2}))
    if figure:
        parts.append(f"![Candidate less softmax, with intervals and margins]({figure.name})")
    parts += ["## Beside the others", _numbers(judgement)]
    parts += ["## Time and memory over N", _costs(judgement)]
    links = [
        f"[{escaped(path.parent.name)}]({Path(os.path.relpath(path, folder)).as_posix()})" for path in judgement.pages
    ]
    parts.append(f"Every comparison, number and its power: {listed(links)}.")
    return "\n\n".join(parts) + "\n"


def _parameters(answers: Sequence[Answer]) -> str:
    """Return those of the whole models: the candidate's beside softmax attention's."""
    parts = []
    for answer in answers:
        counts = {
            arm: next(iter(runs.values())).manifest.get("parameters") for arm, runs in answer.runs.items() if runs
        }
        own, other = counts.get(CANDIDATE), counts.get(BASELINE)
        if own and other:
            _, _, data = answer.study.name.rpartition("/")
            parts.append(f"{own:,} in the model on {data}, softmax {other:,}")
    return "; ".join(parts) or "unknown"


def _numbers(judgement: Judgement) -> str:
    """Return the mean of every arm in every measure."""
    columns, rows = ["attention"], dict[str, list[str]]()
    for answer in judgement.answers:
        for name, measure in answer.study.measures.items():
            columns.append(f"{name} ({measure.unit})" if measure.unit not in ("points", "") else f"{name} (%)")
            for arm in answer.study.arms:
                known = answer.found[name].get(arm)
                shown = judgement.candidate.name if arm == CANDIDATE else arm
                values = list(known.values.values()) if known else []
                rows.setdefault(shown, []).append(_mean(values))
    cells = [[escaped(arm), *values] for arm, values in rows.items()]
    return markdown_table([escaped(one) for one in columns], cells, {0})


def _mean(values: Sequence[float]) -> str:
    mean = sum(values) / len(values) if values else math.nan
    return "" if math.isnan(mean) else f"{mean:.1f}"


def _costs(judgement: Judgement) -> str:
    table = judgement.costs
    shown = table["attention"].replace(judgement.candidate.label, judgement.candidate.name)
    rows = table.assign(attention=shown).astype(str).to_numpy().tolist()
    return markdown_table(list(map(str, table)), [[escaped(cell) for cell in row] for row in rows], {0, 1})


def printed(judgement: Judgement) -> Iterator[str]:
    """Yield the lines for the console, those of each part under its title."""
    for title, lines in (
        ("What it is", judgement.probes()),
        ("Against softmax attention", judgement.comparisons()),
        ("Facts", judgement.facts()),
    ):
        yield f"\n{title}"
        for verdict, question, evidence in lines:
            yield f"  {verdict:9}  {question}: {evidence}"
