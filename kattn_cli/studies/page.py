"""The page of a study: question, answer, numbers, power, what it took, and what was changed after it began."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.figures.study import draw_effects
from kattn_cli.runs.whole_file import write_text
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.studies.answer import Answer
from kattn_cli.studies.evidence import Numbers
from kattn_cli.studies.judgement import Judged
from kattn_cli.studies.registration import Registration, changes
from kattn_cli.tables.text import (
    code,
    counted,
    escaped,
    interval,
    listed,
    markdown_table,
    mean_and_half,
    p_value,
    short,
    signed,
    write_frame,
)

PAGE = "study.md"
SHORT = 8
"""Letters of a commit."""


def write_page(found: Answer, folder: Path, command: str) -> None:
    """Write ``study.md``, ``values.csv``, ``verdicts.csv`` and the figure into a folder.

    Raises:
        RunError: if one cannot be written.
    """
    verdicts = pd.DataFrame(found.verdicts())
    write_frame(folder / "values.csv", pd.DataFrame(found.values()))
    write_frame(folder / "verdicts.csv", verdicts)
    figure = draw_effects(verdicts, found.study.level, folder) if len(verdicts) else None
    write_text(folder / PAGE, page(found, figure, command))


def page(found: Answer, figure: Path | None, command: str) -> str:
    """Return the page as Markdown. ``command``: that wrote it."""
    study = found.study
    parts = [f"# {escaped(study.question)}", *([escaped(study.background)] if study.background else [])]
    parts += [_registered(found), "## Answer", *_sentences(found.primary)]
    if figure:
        parts.append(f"![Differences with their intervals, and the margins]({figure.name})")
    parts += ["## What was compared", _arms(found), "## Verdicts", _how(found), _verdicts(found.primary)]
    if found.secondary:
        parts += [
            "Not primary; a family of their own, which answers no question by itself:",
            _verdicts(found.secondary),
        ]
    parts += ["## Numbers", "Mean over seeds ± half of the 95 % Student-t interval.", _numbers(found)]
    parts += ["## Power", *_power(found), "## What it took", *_cost(found, command)]
    if later := changes(found.wordings):
        parts += ["## Changed after it began", *(_changed(one, text) for one, text in later)]
    return "\n\n".join(parts) + "\n"


def print_verdicts(found: Answer) -> None:
    """Print the question, a line for each primary comparison, and the table of all."""
    console.print(found.study.question)
    for one in found.primary:
        console.print(f"{_asked(one)}. {one.decision.sentence}")
    columns, rows = _verdict_cells(found.judged)
    print_wide(columns, rows)


def _registered(found: Answer) -> str:
    first = found.wordings[0]
    text = f"Registered {first.date[:16].replace('T', ' ')} UTC, text {code(first.digest)}"
    text += f", commit {code(first.commit[:SHORT])}." if first.commit else "."
    if len(found.wordings) > 1:
        text += f" **Changed afterwards {counted(len(found.wordings) - 1, 'time')}**: see the end of the page."
    if early := found.early():
        total = sum(map(len, found.runs.values()))
        text += f" {early} of {counted(total, 'run')} were trained before that."
    if missing := found.missing():
        left = [f"{arm} ({listed([str(seed) for seed in seeds])})" for arm, seeds in missing.items()]
        text += f" **Not complete**: not trained are the seeds of {escaped(listed(left))}."
    return text


def _sentences(judged: Sequence[Judged]) -> list[str]:
    if not judged:
        return ["Nothing is measured yet of what the primary comparisons compare."]
    return ["\n".join(f"- **{escaped(_asked(one))}.** {escaped(one.decision.sentence)}" for one in judged)]


def _asked(one: Judged) -> str:
    return f"{one.comparison.first} against {one.comparison.second}, {one.measure}"


def _arms(found: Answer) -> str:
    rows = []
    for name, arm in found.study.arms.items():
        what = code(arm.recipe or f"{arm.of} run as {arm.run_as}")
        seeds = found.runs.get(arm.of or name, {})
        rows.append([escaped(name), what, escaped(arm.about), str(len(seeds))])
    return markdown_table(["arm", "runs of", "what it is", "seeds"], rows, {0, 1, 2})


def _how(found: Answer) -> str:
    study = found.study
    return (
        f"Differences are the first arm less the second, with {100 * (1 - study.level):.0f} % intervals. p-values are "
        "after the correction for their family: that there is no difference, and that there is one beyond the margin "
        "(two one-sided tests)."
    )


def _verdicts(judged: Sequence[Judged]) -> str:
    columns, rows = _verdict_cells(judged)
    return markdown_table(columns, [[escaped(cell) for cell in row] for row in rows], {0, 1, len(columns) - 1})


def _verdict_cells(judged: Sequence[Judged]) -> tuple[list[str], list[list[str]]]:
    columns = ["comparison", "measure", "difference", "interval", "margin", "published", "p, apart", "p, within"]
    columns += ["seeds", "images", "verdict"]
    return columns, [_cells(one) for one in judged]


def _cells(one: Judged) -> list[str]:
    decision, effect = one.decision, one.effect
    low, high = effect.interval()
    digits = _digits(decision.question.margin)
    published = decision.question.published
    return [
        f"{one.comparison.first} − {one.comparison.second}",
        one.measure,
        signed(effect.estimate, digits),
        interval(low, high, digits),
        short(decision.question.margin),
        "" if math.isnan(published) else signed(published, digits),
        p_value(decision.p_apart),
        p_value(decision.p_within),
        str(effect.seeds),
        f"{effect.images:,}" if effect.images else "",
        decision.verdict.value,
    ]


def _digits(margin: float) -> int:
    """Return the decimals that a difference of the margin's size is worth."""
    return max(1, 1 - math.floor(math.log10(margin)))


def _numbers(found: Answer) -> str:
    measures = found.study.measures
    columns = ["arm", *(f"{name} ({one.unit})" if one.unit else name for name, one in measures.items())]
    rows = [
        [escaped(arm), *(_mean(found.found[name].get(arm, Numbers()), one.margin) for name, one in measures.items())]
        for arm in found.study.arms
    ]  # fmt: skip
    return markdown_table([escaped(one) for one in columns], rows, {0})


def _mean(known: Numbers, margin: float | None) -> str:
    values = list(known.values.values())
    if not values:
        return ""
    lost = sum(math.isnan(value) for value in values)
    kept = [value for value in values if not math.isnan(value)]
    digits = _digits(margin or (max(map(abs, kept), default=0.0) / 10) or 1.0)
    text = mean_and_half(*mean_interval(kept), digits) if kept else ""
    return f"{text} ({counted(lost, 'seed')} not a number)".strip() if lost else text


def _power(found: Answer) -> Iterator[str]:
    rows = [
        [
            escaped(f"{one.comparison.first} − {one.comparison.second}"),
            escaped(one.measure),
            short(one.decision.question.margin),
            "" if math.isnan(one.power) else f"{one.power:.2f}",
            "" if math.isnan(one.decision.smallest_seen) else f"{one.decision.smallest_seen:.2g}",
            f"{one.decision.seeds_needed:,}" if one.decision.seeds_needed else "no number of them",
            "" if math.isnan(hours := found.hours_needed(one)) else f"{hours:.1f}",
            f"{one.decision.images_needed:,}" if one.decision.images_needed else "",
        ]
        for one in found.judged
    ]
    yield (
        "What the study could see, from the scatter that was found: the power for a difference of the margin; the "
        "smallest difference that is told from 0 with a power of 0.8, after the correction for its family; the seeds "
        "that one of the margin takes on these images, with the hours that their trainings take on such a machine, or "
        "the images over these seeds."
    )
    columns = ["comparison", "measure", "margin", "power", "smallest seen", "seeds needed", "hours", "or images"]
    yield markdown_table(columns, rows, {0, 1})


def _cost(found: Answer, command: str) -> Iterator[str]:
    seconds = found.training_seconds()
    hours = timedelta(seconds=round(sum(seconds.values())))
    records = list(found.records())
    commits = list(dict.fromkeys(str(one["commit"])[:SHORT] for one in records if one.get("commit")))
    dirty = any(one.get("dirty") for one in records)
    machines = dict.fromkeys(
        f"{one.get('device', '')}: {(one.get('machine') or {}).get('processor', 'unknown')}" for one in records
    )
    changed = "; some with changes that were not committed" if dirty else ""
    yield (
        f"Trainings took {hours} (h:mm:ss) together, each on its own. Commits: {listed([code(one) for one in commits])}"
        f"{changed}. Machines: {escaped(listed(list(machines)))}. Written by {code(command)}; `values.csv` has a row "
        "for each measure, arm and seed, `verdicts.csv` for each comparison."
    )


def _changed(later: Registration, text: str) -> str:
    return f"{later.date[:16].replace('T', ' ')} UTC, text {code(later.digest)}:\n\n```diff\n{text.rstrip()}\n```"
