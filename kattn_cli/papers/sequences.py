"""Claims on series, long sequences and language: two models on the same task, in the same setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

from kattn_cli.papers import printed
from kattn_cli.papers.evidence import Evidence, by_seed, less, split_label, told
from kattn_cli.papers.finding import Finding, Verdict, judged
from kattn_cli.papers.published import PaperName
from kattn_cli.papers.sequence_papers import own_setting

SAME = ["run_seed", "share", "pair"]
Value = Callable[[float], float]


@dataclass(frozen=True)
class Pair:
    """Means by seed of one label on a task, and of the model that it is compared with.

    ``row``: the task, as the papers' tables call it; ``others``: ``lra/small/*/primal``, the same for one recipe on all
    tasks; ``base``: the model that it is compared with.
    """

    row: str
    label: str
    others: str
    base: str
    setting: str
    devices: str
    ours: dict[int, float]
    theirs: dict[int, float]

    @property
    def difference(self) -> dict[int, float]:
        return less(self.ours, self.theirs)


def pairs(evidence: Evidence, kind: str, metric: str, ours: str, base: str, *, value: Value = float) -> Iterator[Pair]:
    """Labels of the model ``ours`` beside one of ``base`` in the same folder, with the same overrides and setting.

    Args:
        kind, metric: see :func:`~kattn_cli.tables.sequence_values.sequence_values`.
        value: what is compared of a number, its logarithm, say.
    """
    table = evidence.sequences
    table = table[(table["kind"] == kind) & (table["metric"] == metric)]
    for (row, setting), rows in table.groupby(["row", "setting"], sort=False):
        labels = {str(label): part for label, part in rows.groupby("label", sort=False)}
        for label, part in labels.items():
            folder, _, changed = split_label(label)
            theirs = [
                other
                for name, other in labels.items()
                if other["model"].iloc[0] == base and split_label(name)[::2] == (folder, changed)
            ]
            if part["model"].iloc[0] != ours or not theirs:
                continue
            joined = part.merge(theirs[0], on=SAME, suffixes=("", "_base"))
            joined = joined.assign(**{one: joined[one].map(value) for one in ("value", "value_base")})
            if len(joined):
                above = folder.rstrip("/").rpartition("/")[0]
                others = f"{above}/*/{label.removeprefix(folder)}".removeprefix("/")
                means = [by_seed(joined, one) for one in ("value", "value_base")]
                devices = ", ".join(dict.fromkeys(joined["pair"].astype(str)))
                yield Pair(str(row), label, others, base, str(setting), devices, means[0], means[1])


def better_on_average(
    paper: PaperName,
    table: str,
    kind: str,
    ours: str,
    bases: Sequence[str],
    above: float,
    evidence: Evidence,
    metric: str = "top1",
) -> list[Finding]:
    """Top-1, or another metric, less that of each base, paired by seed: mean over the tasks of one recipe's name."""
    found = []
    for base in bases:
        known = sorted(pairs(evidence, kind, metric, ours, base), key=lambda pair: pair.others)
        for others, group in groupby(known, key=lambda pair: pair.others):
            tasks = list(group)
            seeds = set.intersection(*(set(task.difference) for task in tasks))
            means = {seed: fmean(task.difference[seed] for task in tasks) for seed in sorted(seeds)}
            prints = [printed.difference(paper, table, task.row, metric, (ours, base)) for task in tasks]
            unit = "" if metric == "reward" else " %"
            each = ", ".join(f"{task.row} {told(task.ours, 4)} against {told(task.theirs, 4)}{unit}" for task in tasks)
            label = tasks[0].label if len(tasks) == 1 else others
            label += f" against {base}" if len(bases) > 1 else ""
            found.append(judged(label, means, above=above, beside=each, paper_number=fmean(prints)))
    return found


def within(
    paper: PaperName, table: str, kind: str, metric: str, models: tuple[str, str], below: float, evidence: Evidence
) -> list[Finding]:
    """A cost of the first model as a share of the second's, each task by itself."""
    found = []
    for pair in pairs(evidence, kind, metric, *models):
        shares = {seed: one / pair.theirs[seed] for seed, one in pair.ours.items()}
        beside = f"{told(pair.ours)} against {told(pair.theirs)}, {pair.devices}; {pair.setting}"
        prints = printed.ratio(paper, table, pair.row, metric, models)
        found.append(judged(pair.label, shares, below=below, beside=beside, paper_number=prints))
    return found


def cheaper(
    paper: PaperName, table: str, kind: str, metric: str, models: Sequence[str], evidence: Evidence
) -> list[Finding]:
    """A cost as a share of softmax's, below 1, on each task by itself.

    Savings grow with the length. So what costs more on sequences that are shorter than the paper's, or of a task that
    it prints no number of, denies nothing: that cannot be told at this size.
    """
    found = []
    for model in models:
        for pair in pairs(evidence, kind, metric, model, "softmax"):
            shares = {seed: one / pair.theirs[seed] for seed, one in pair.ours.items()}
            prints = printed.ratio(paper, table, pair.row, metric, (model, "softmax"))
            beside = f"{told(pair.ours)} against {told(pair.theirs)}, {pair.devices}; {pair.setting}"
            one = judged(pair.label, shares, below=1, beside=beside, paper_number=prints)
            length = own_setting(paper, kind, pair.row).get("length", "")
            if one.verdict is Verdict.does_not_hold and length not in pair.setting:
                one = _untold(one, f"shorter than the paper's, {length}")
            elif one.verdict is Verdict.does_not_hold and math.isnan(prints):
                one = _untold(one, "the paper has no number of this one")
            found.append(one)
    return found


def _untold(finding: Finding, why: str) -> Finding:
    """The same, but that it cannot be told."""
    return replace(finding, verdict=Verdict.cannot_be_told, beside=f"{finding.beside}; {why}")


def language(
    metric: str,
    models: tuple[str, str],
    key: tuple[PaperName, str, str, str],
    below: float,
    evidence: Evidence,
    value: Value = float,
) -> list[Finding]:
    """The test set of a run's own corpus: the first model's number less the second's, mean over shares of words.

    ``key``: paper, table, row and metric of what is printed.
    """
    found = []
    for pair in pairs(evidence, "language", metric, *models, value=value):
        if pair.row == "test":
            beside = f"{told(pair.ours, 4)} against {told(pair.theirs, 4)}; {pair.setting}"
            prints = printed.difference(*key, models)
            found.append(judged(pair.label, pair.difference, below=below, beside=beside, paper_number=prints))
    return found
