"""Two models on the same data in the same setting: the differences that claims are about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

import pandas as pd

from kattn_cli.papers.claim import Finding, Verdict, judged
from kattn_cli.papers.evidence import Evidence, by_seed, less, shown, split_label
from kattn_cli.papers.paper import Paper
from kattn_cli.tables.frames import clean_rows
from kattn_cli.tables.measurements import of_one_checkpoint, require_one, settings

Choose = Callable[[pd.DataFrame], pd.DataFrame]
Printed = Callable[[str], float]
"""From the folder of a run to what its paper prints."""
Value = Callable[[float], float]


@dataclass(frozen=True)
class Pair:
    """Means by seed of one label, and of what it is compared with."""

    label: str
    ours: dict[int, float]
    theirs: dict[int, float]

    @property
    def difference(self) -> dict[int, float]:
        return less(self.ours, self.theirs)

    @property
    def share(self) -> dict[int, float]:
        """Return the label's mean over the other's."""
        return {seed: one / self.theirs[seed] for seed, one in self.ours.items()}

    def beside(self, digits: int = 3, unit: str = "") -> str:
        """Return ``81.2 against 80.9 %``."""
        return f"{shown(self.ours, digits)} against {shown(self.theirs, digits)} {unit}".rstrip()


@dataclass(frozen=True)
class ImagePair(Pair):
    """On images. ``folder``: that of one of the label's runs."""

    folder: str


@dataclass(frozen=True)
class SequencePair(Pair):
    """On sequences.

    Attributes:
        row: the task, as the papers' tables call it.
        others: ``lra/small/*/primal``, the same for one recipe on all tasks.
        setting: what was run.
        measured: on which device, of costs.
    """

    row: str
    others: str
    setting: str
    measured: str


def image_pairs(
    evidence: Evidence,
    table: str,
    ours: str,
    base: str,
    *,
    choose: Choose = lambda rows: rows,
    one_of: Sequence[str] = (),
    column: str = "top1",
) -> Iterator[ImagePair]:
    """Yield recipes called like ``ours`` beside ``base`` of their folder, where both have rows that can be compared.

    Args:
        table, ours, base: see :meth:`~kattn_cli.papers.evidence.Evidence.pairs`.
        choose: which of a label's rows.
        one_of: columns of which a run has one row a value, of as many images as both models were measured on, and of
            its best weights, if it has such.

    Only rows that are the same measurement are compared, by every column of their identity; the weights'
    fingerprints alone differ.

    Raises:
        RunError: if both models have several rows of one run that fit, in one line.
    """
    for label, *both in evidence.pairs(table, ours, base):
        parts = [of_one_checkpoint(choose(rows)) for rows in both]
        identified = [] if table == "metrics" else settings(parts[0], ["name"])
        keys = ["run_seed", *dict.fromkeys([*one_of, *identified])]
        keys = [one for one in keys if one in parts[1]]
        parts = [part.drop_duplicates(keys, keep="last") for part in parts]
        joined = parts[0].merge(parts[1], on=keys, suffixes=("", "_base"))
        if "images" in keys:
            joined = joined[joined["images"] == joined.groupby("run_seed")["images"].transform("max")]
        if table != "metrics":
            require_one(joined, f"{table}.csv", ["run_seed", *one_of], ["name", *one_of])
        joined = joined.dropna(subset=[column, f"{column}_base"])
        if len(joined):
            yield ImagePair(label, *_means(joined, column), str(joined["folder"].iloc[0]))


def clean_pairs(evidence: Evidence, ours: str, base: str) -> Iterator[ImagePair]:
    """Yield pairs of clean test top-1, over the most images that both were measured on."""
    return image_pairs(evidence, "eval", ours, base, choose=clean_rows)


def sequence_pairs(
    evidence: Evidence, kind: str, metric: str, ours: str, base: str, *, value: Value = float
) -> Iterator[SequencePair]:
    """Yield labels of the model ``ours`` beside one of ``base`` of the same folder, overrides and setting.

    Args:
        kind, metric: see :func:`~kattn_cli.papers.values.sequence_values`.
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
            joined = part.merge(theirs[0], on=["run_seed", "share", "pair"], suffixes=("", "_base"))
            joined = joined.assign(**{one: joined[one].map(value) for one in ("value", "value_base")})
            if len(joined):
                above = folder.rstrip("/").rpartition("/")[0]
                others = f"{above}/*/{label.removeprefix(folder)}".removeprefix("/")
                measured = ", ".join(dict.fromkeys(joined["pair"].astype(str)))
                yield SequencePair(label, *_means(joined, "value"), str(row), others, str(setting), measured)


def _means(joined: pd.DataFrame, column: str) -> tuple[dict[int, float], dict[int, float]]:
    """Return means by seed, of ours and of what it is compared with."""
    return by_seed(joined, column), by_seed(joined, f"{column}_base")


def nothing_printed(folder: str) -> float:
    """Return nan, for a quantity that the paper does not print."""
    return math.nan


def judge_pairs(
    pairs: Iterable[ImagePair],
    *,
    above: float | None = None,
    below: float | None = None,
    unit: str = "%",
    digits: int = 3,
    printed: Printed = nothing_printed,
) -> list[Finding]:
    """Judge each pair by its difference."""
    return [
        judged(
            pair.label,
            pair.difference,
            above=above,
            below=below,
            beside=pair.beside(digits, unit),
            paper_number=printed(pair.folder),
        )
        for pair in pairs
    ]


def more_accurate(
    evidence: Evidence, ours: str, base: str, *, above: float = 0.0, printed: Printed = nothing_printed
) -> list[Finding]:
    """Judge the difference of clean test top-1."""
    return judge_pairs(clean_pairs(evidence, ours, base), above=above, digits=4, printed=printed)


def better_on_average(
    paper: Paper,
    table: str,
    kind: str,
    ours: str,
    bases: Sequence[str],
    above: float,
    evidence: Evidence,
    metric: str = "top1",
) -> list[Finding]:
    """Judge top-1 (or ``metric``) less that of each base, paired by seed: the mean over tasks of one recipe's name."""
    found = []
    for base in bases:
        known = sorted(sequence_pairs(evidence, kind, metric, ours, base), key=lambda pair: pair.others)
        for others, group in groupby(known, key=lambda pair: pair.others):
            tasks = list(group)
            seeds = set.intersection(*(set(task.difference) for task in tasks))
            means = {seed: fmean(task.difference[seed] for task in tasks) for seed in sorted(seeds)}
            prints = [paper.difference(table, task.row, metric, (ours, base)) for task in tasks]
            unit = "" if metric == "reward" else "%"
            each = ", ".join(f"{task.row} {task.beside(4, unit)}" for task in tasks)
            label = tasks[0].label if len(tasks) == 1 else others
            label += f" against {base}" if len(bases) > 1 else ""
            found.append(judged(label, means, above=above, beside=each, paper_number=fmean(prints)))
    return found


def within(
    paper: Paper, table: str, kind: str, metric: str, models: tuple[str, str], below: float, evidence: Evidence
) -> list[Finding]:
    """Judge a cost of the first model as a share of the second's, each task by itself."""
    return [
        judged(
            pair.label,
            pair.share,
            below=below,
            beside=f"{pair.beside()}, {pair.measured}; {pair.setting}",
            paper_number=paper.ratio(table, pair.row, metric, models),
        )
        for pair in sequence_pairs(evidence, kind, metric, *models)
    ]


def cheaper(
    paper: Paper, table: str, kind: str, metric: str, models: Sequence[str], evidence: Evidence
) -> list[Finding]:
    """Judge a cost as a share of softmax's, below 1, on each task by itself.

    Savings grow with the length. So what costs more on sequences that are shorter than the paper's, or of a task that
    it prints no number of, denies nothing: that cannot be told at this size.
    """
    (beside,) = (one for one in paper.tables if table in one.tables)
    found = []
    for model in models:
        both = (model, "softmax")
        pairs = list(sequence_pairs(evidence, kind, metric, *both))
        for pair, one in zip(pairs, within(paper, table, kind, metric, both, 1, evidence), strict=True):
            length = beside.own(model, pair.row).get("length", "")
            why = ""
            if one.verdict is Verdict.does_not_hold and length not in pair.setting:
                why = f"shorter than the paper's, {length}"
            elif one.verdict is Verdict.does_not_hold and math.isnan(one.paper_number):
                why = "the paper has no number of this one"
            if why:
                one = replace(one, verdict=Verdict.cannot_be_told, beside=f"{one.beside}; {why}")
            found.append(one)
    return found


def language(
    metric: str,
    models: tuple[str, str],
    printed: tuple[Paper, str, str, str],
    below: float,
    evidence: Evidence,
    value: Value = float,
) -> list[Finding]:
    """Judge the first model's number less the second's on the test set of a run's own corpus.

    Args:
        printed: paper, table, row and metric of what is printed.
        value: what is compared of a number; over several shares of swapped words, the mean.
    """
    paper, table, row, metric_printed = printed
    return [
        judged(
            pair.label,
            pair.difference,
            below=below,
            beside=f"{pair.beside(4)}; {pair.setting}",
            paper_number=paper.difference(table, row, metric_printed, models),
        )
        for pair in sequence_pairs(evidence, "language", metric, *models, value=value)
        if pair.row == "test"
    ]
