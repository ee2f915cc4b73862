"""Two models on the same data in the same setting, and all that was trained beside them: what claims are about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean

import pandas as pd

from kattn_cli.papers.claim import Estimated, Finding, Scale, Truth, missing, over_seeds, truth_of
from kattn_cli.papers.evidence import Evidence, by_seed, less, shown, split_label
from kattn_cli.papers.paper import Paper
from kattn_cli.runs.bits import CORRECT
from kattn_cli.statistics.crossed import crossed
from kattn_cli.statistics.effect import Effect
from kattn_cli.statistics.two_way import compare
from kattn_cli.tables.bits import right_of
from kattn_cli.tables.frames import clean_rows
from kattn_cli.tables.margins import in_percent
from kattn_cli.tables.measurements import of_one_checkpoint, require_one, settings

Choose = Callable[[pd.DataFrame], pd.DataFrame]
Printed = Callable[[str], float]
"""From the folder of a run to what its paper prints."""
Value = Callable[[float], float]
BySeed = Mapping[int, float]
NOTHING_LEFT = "{0:g} % against {0:g} % at every seed: there is nothing to compare"


@dataclass(frozen=True)
class Pair:
    """Means by seed of one label, and of what it is compared with.

    Attributes:
        label, against: the two.
        ours, theirs: seed → number; not a number where it was measured and is none.
        peers: label → the same of all that was trained together with them, for the variance.
        rows: those of both, where they are one row a seed that says which images were right.
    """

    label: str
    against: str
    ours: dict[int, float]
    theirs: dict[int, float]
    peers: Mapping[str, BySeed] = field(default_factory=dict)
    rows: tuple[pd.DataFrame, pd.DataFrame] | None = None

    @property
    def difference(self) -> dict[int, float]:
        return less(self.ours, self.theirs)

    @property
    def share(self) -> dict[int, float]:
        """Return the label's mean over the other's."""
        return {seed: one / self.theirs[seed] for seed, one in self.ours.items()}

    @property
    def why(self) -> str:
        """Return why nothing can be told: seeds without a number, or 0 % against 0 %; nothing where it can."""
        both = {*self.ours.values(), *self.theirs.values()}
        if both in ({0.0}, {100.0}):
            return NOTHING_LEFT.format(both.pop())
        return missing(self.difference)

    def effect(self, value: Value = float) -> Effect | None:
        """Return the difference: image by image where both say which were right, else pooled over what was trained
        together; None without a seed.

        Args:
            value: what is compared of a number, :func:`~kattn_cli.tables.margins.in_percent`, say.
        """
        if self.rows:
            ours, theirs = right_of(dict(zip((self.label, self.against), self.rows, strict=True))).values()
            return crossed(ours, theirs)
        arms = {**self.peers, self.label: self.ours, self.against: self.theirs}
        known = {arm: _finite(by_seed, value) for arm, by_seed in arms.items()}
        if not known[self.label].keys() & known[self.against].keys():
            return None
        others = [(arm, self.against) for arm in known if arm not in (self.label, self.against)]
        return compare(known, [(self.label, self.against), *others])[0]

    def beside(self, digits: int = 3, unit: str = "") -> str:
        """Return ``81.2 against 80.9 %``."""
        return f"{shown(self.ours, digits)} against {shown(self.theirs, digits)} {unit}".rstrip()


def _finite(by_seed: BySeed, value: Value) -> dict[int, float]:
    valued = {seed: value(number) for seed, number in by_seed.items()}
    return {seed: number for seed, number in valued.items() if math.isfinite(number)}


@dataclass(frozen=True)
class ImagePair(Pair):
    """On images. ``folder``: that of one of the label's runs."""

    folder: str = ""


@dataclass(frozen=True)
class SequencePair(Pair):
    """On sequences.

    Attributes:
        row: the task, as the papers' tables call it.
        others: ``lra/small/*/primal``, the same for one recipe on all tasks.
        setting: what was run.
        measured: on which device, of costs.
        tokens: of a sequence, 0 where the recipe does not say.
    """

    row: str = ""
    others: str = ""
    setting: str = ""
    measured: str = ""
    tokens: int = 0

    @property
    def reached(self) -> Scale:
        """What it comes up to, for a claim's scale."""
        level = fmean(self.theirs.values())
        return Scale(tokens=self.tokens, accuracy=level if math.isfinite(level) else 0.0, data=(self.row,))


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
        joined = joined.dropna(subset=[f"{column}_base", column], how="all")
        if len(joined):
            against = str(both[1]["label"].iloc[0])
            peers = {
                name: _as_measured(of_one_checkpoint(choose(rows)), joined, keys, column)
                for name, rows in evidence.trained_with(table, label)
            }
            folder = str(joined["folder"].iloc[0])
            yield ImagePair(label, against, *_means(joined, column), peers, _bits(parts, joined, keys), folder)


def _as_measured(rows: pd.DataFrame, joined: pd.DataFrame, keys: Sequence[str], column: str) -> dict[int, float]:
    """Return means by seed over the rows that are the same measurements as those of a pair, of seeds that have all."""
    if not {*keys, column} <= set(rows):
        return {}
    same = rows.drop_duplicates(keys, keep="last").merge(joined[list(keys)], on=list(keys))
    wanted, there = (part.groupby("run_seed").size() for part in (joined, same))
    whole = [seed for seed, count in wanted.items() if there.get(seed) == count]
    return by_seed(same[same["run_seed"].isin(whole)], column)


def _bits(
    parts: Sequence[pd.DataFrame], joined: pd.DataFrame, keys: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Return the rows of both that a pair is made of, if each seed has one and all say which images were right."""
    if joined["run_seed"].duplicated().any() or not all(CORRECT in part for part in parts):
        return None
    ours, theirs = (part.merge(joined[list(keys)], on=list(keys)) for part in parts)
    if all(isinstance(cell, str) for part in (ours, theirs) for cell in part[CORRECT]):
        return ours, theirs
    return None


def clean_pairs(evidence: Evidence, ours: str, base: str) -> Iterator[ImagePair]:
    """Yield pairs of clean test top-1, over the most images that both were measured on."""
    return image_pairs(evidence, "eval", ours, base, choose=clean_rows)


def sequence_pairs(evidence: Evidence, kind: str, metric: str, ours: str, base: str) -> Iterator[SequencePair]:
    """Yield labels of the model ``ours`` beside one of ``base`` of the same folder, overrides and setting.

    Args:
        kind, metric: see :func:`~kattn_cli.papers.values.sequence_values`.
    """
    table = evidence.sequences
    table = table[(table["kind"] == kind) & (table["metric"] == metric)]
    for (row, setting), rows in table.groupby(["row", "setting"], sort=False):
        labels = {str(label): part for label, part in rows.groupby("label", sort=False)}
        for label, part in labels.items():
            folder, _, changed = split_label(label)
            together = {name: one for name, one in labels.items() if split_label(name)[0] == folder}
            alike = (name for name in together if split_label(name)[2] == changed)
            against = next((name for name in alike if together[name]["model"].iloc[0] == base), None)
            if part["model"].iloc[0] != ours or against is None:
                continue
            on = ["run_seed", "share", "pair"]
            joined = part.merge(together[against], on=on, suffixes=("", "_base"))
            if joined.empty:
                continue
            above = folder.rstrip("/").rpartition("/")[0]
            yield SequencePair(
                label,
                against,
                *_means(joined, "value"),
                {name: _as_measured(one, joined, on, "value") for name, one in together.items()},
                row=str(row),
                others=f"{above}/*/{label.removeprefix(folder)}".removeprefix("/"),
                setting=str(setting),
                measured=", ".join(dict.fromkeys(joined["pair"].astype(str))),
                tokens=int(part["tokens"].iloc[0]),
            )


def _means(joined: pd.DataFrame, column: str) -> tuple[dict[int, float], dict[int, float]]:
    """Return means by seed, of ours and of what it is compared with."""
    return by_seed(joined, column), by_seed(joined, f"{column}_base")


def nothing_printed(folder: str) -> float:
    """Return nan, for a quantity that the paper does not print."""
    return math.nan


def differences(
    pairs: Iterable[ImagePair],
    *,
    above: float | None = None,
    below: float | None = None,
    unit: str = "%",
    digits: int = 3,
    printed: Printed = nothing_printed,
) -> list[Finding]:
    """Return a finding on the difference of each pair."""
    bound = above if above is not None else below
    assert bound is not None
    return [
        Estimated(
            pair.label,
            pair.beside(digits, unit),
            printed(pair.folder),
            effect=pair.effect(),
            bound=bound,
            below=above is None,
            why=pair.why,
        )
        for pair in pairs
    ]


def more_accurate(
    evidence: Evidence, ours: str, base: str, *, above: float = 0.0, printed: Printed = nothing_printed
) -> list[Finding]:
    """Return findings on the difference of clean test top-1."""
    return differences(clean_pairs(evidence, ours, base), above=above, digits=4, printed=printed)


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
    """Return findings on top-1 (or ``metric``) less that of each base: the mean over tasks of one recipe's name."""
    found: list[Finding] = []
    for base in bases:
        known = sorted(sequence_pairs(evidence, kind, metric, ours, base), key=lambda pair: pair.others)
        for _, group in groupby(known, key=lambda pair: pair.others):
            tasks = list(group)
            pair = over_tasks(tasks)
            unit = "" if metric == "reward" else "%"
            found.append(
                Estimated(
                    pair.label + (f" against {base}" if len(bases) > 1 else ""),
                    ", ".join(f"{task.row} {task.beside(4, unit)}" for task in tasks),
                    fmean(paper.difference(table, task.row, metric, (ours, base)) for task in tasks),
                    least([task.reached for task in tasks]),
                    effect=pair.effect(),
                    bound=above,
                    why=pair.why,
                )
            )
    return found


def over_tasks(tasks: Sequence[SequencePair]) -> SequencePair:
    """Return the pair of means over several tasks, of the seeds and peers that all of them have."""
    if len(tasks) == 1:
        return tasks[0]
    seeds = sorted(set.intersection(*(set(task.difference) for task in tasks)))
    named = [{_own_name(name): by_seed for name, by_seed in task.peers.items()} for task in tasks]
    names = [name for name in named[0] if all(name in one for one in named)]
    peers = {name: _mean_over([one[name] for one in named]) for name in names}
    ours, theirs = ({seed: fmean(one[seed] for one in side) for seed in seeds}
                    for side in ([task.ours for task in tasks], [task.theirs for task in tasks]))  # fmt: skip
    first = tasks[0]
    label, against = first.others, _own_name(first.against)
    peers = {name: by_seed for name, by_seed in peers.items() if name not in (_own_name(first.label), against)}
    return SequencePair(label, against, ours, theirs, peers, row=first.row, others=first.others)


def _own_name(label: str) -> str:
    return label.removeprefix(split_label(label)[0])


def _mean_over(tasks: Sequence[BySeed]) -> dict[int, float]:
    seeds = set.intersection(*(set(task) for task in tasks))
    return {seed: fmean(task[seed] for task in tasks) for seed in sorted(seeds)}


def least(reached: Sequence[Scale]) -> Scale:
    """Return what all of them come up to."""
    data = tuple(dict.fromkeys(name for one in reached for name in one.data))
    return Scale(min(one.tokens for one in reached), min(one.accuracy for one in reached), data=data)


def shares(
    paper: Paper, table: str, kind: str, metric: str, models: Sequence[str], below: float | None, evidence: Evidence
) -> list[Finding]:
    """Return the cost of each of the models as a share of softmax's, each task by itself, with its range over seeds.

    Args:
        below: where the paper says that it lies; None where it says nothing that can be held against it.
    """
    found: list[Finding] = []
    for model in models:
        for pair in sequence_pairs(evidence, kind, metric, model, "softmax"):
            known = list(pair.share.values())
            truth = Truth.no_bound if below is None else truth_of(min(known), max(known), below)
            beside = f"{pair.beside()}, {pair.measured}, range over {len(known)} seeds; {pair.setting}"
            printed = paper.ratio(table, pair.row, metric, (model, "softmax"))
            found.append(over_seeds(pair.label, known, beside, printed, pair.reached, truth))
    return found


def language(
    metric: str,
    models: tuple[str, str],
    printed: tuple[Paper, str, str, str],
    below: float,
    evidence: Evidence,
    value: Value = in_percent,
) -> list[Finding]:
    """Return findings on the first model's number less the second's, on the test set of a run's own corpus.

    Args:
        printed: paper, table, row and metric of what is printed.
        value: what is compared of a perplexity, and of the printed one; over several shares of swapped words, the mean.
    """
    paper, table, row, metric_printed = printed
    theirs = [paper.number(table, row, metric_printed, model) for model in models]
    ours, base = theirs if metric_printed == "loss" else map(value, theirs)
    return [
        Estimated(
            pair.label,
            f"{pair.beside(4)}; {pair.setting}",
            ours - base,
            effect=pair.effect(value),
            bound=below,
            below=True,
            why=pair.why,
        )
        for pair in sequence_pairs(evidence, "language", metric, *models)
        if pair.row == "test"
    ]
