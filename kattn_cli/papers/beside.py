"""Ours beside a paper's: which numbers of runs belong into its tables, and how they differ from its baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pandas as pd

from kattn_cli.papers.described import FAN, PLAIN, SEGMENTER, Described
from kattn_cli.papers.paper import Paper, Printed
from kattn_cli.papers.values import Data, Measured
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.statistics.two_way import compare
from kattn_cli.statistics.verdict import Question, decide
from kattn_cli.tables.margins import (
    ATTACKED,
    CLEAN,
    CORRUPTED,
    LOST,
    MCE,
    OUT_OF_DISTRIBUTION,
    PERPLEXED,
    SCORED,
    SEGMENTED,
)

KEY = ["table", "row", "metric", "setting", "measured", "share"]
COLUMNS = ["paper_name", *KEY, "label", "model", "mean", "low", "high", "seeds", "paper", "baseline"]
COLUMNS += ["difference", "difference_low", "difference_high", "pairs", "verdict", "paper_difference", "differs"]
HIGHER_IS_BETTER = (*("top1", "top5", "validation_top1", "train_top1", "reward", "aupr", "mean_accuracy", "mean_iou"),)
"""Metrics of which more is better; of all others, less is."""
MARGINS = {
    "top1": CLEAN,
    "top5": CLEAN,
    "validation_top1": CLEAN,
    "train_top1": CLEAN,
    "mce": MCE,
    "aupr": OUT_OF_DISTRIBUTION,
    "mean_accuracy": SEGMENTED,
    "mean_iou": SEGMENTED,
    "reward": SCORED,
    "loss": LOST,
}
"""Of metrics; those of perplexities are in % of the baseline's, and costs have none."""
OF_KINDS = {"attacked": ATTACKED, "corrupted": CORRUPTED, "by_type": CORRUPTED}
"""Of the accuracies of these kinds of numbers."""
Layout = Literal["mechanisms", "numbers", "settings"]


@dataclass(frozen=True)
class PaperTable:
    """One table of ours beside a paper's; each paper overrides what its tables have otherwise.

    Attributes:
        title: its heading.
        tables: the paper's tables that it is beside, first the one for what the paper has no number of.
        kinds: of :mod:`~kattn_cli.papers.values`, each with its metrics, first what the paper is about.
        note: what to know before reading it.
        rows: our rows → the paper's, where they are not the same; others are left out then.
        printed_only: whether what the paper has no number of is left out.
        claims: models that the paper says are better than the baseline, and by which metrics.
        layout: how it is written, see :mod:`~kattn_cli.papers.text`.
        data: what the runs read.
    """

    title: str
    tables: tuple[str, ...]
    kinds: Mapping[str, tuple[str, ...]]
    note: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)
    printed_only: bool = False
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layout: Layout = "mechanisms"

    data: ClassVar[Data]

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(metric for metrics in self.kinds.values() for metric in metrics))

    def model(self, run: Described) -> str | None:
        """Return the paper's model that a run is laid beside, empty if it has none such; None leaves the run out."""
        return run.model

    def worth(self, models: Collection[str]) -> bool:
        """Return whether runs of these models say anything in this table."""
        return True

    def row(self, run: Described, kind: str, row: str) -> str | None:
        """Return the paper's row that is nearest to a number of ours; None leaves the number out."""
        return self.rows.get(row) if self.rows else row

    def setting(self, run: Described, setting: str) -> str:
        """Return the words for what was run."""
        return setting

    def baselines(self, model: str) -> Sequence[str]:
        """Return the models that the paper compares a model with, first the one that counts most."""
        return ("softmax",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        """Return what the paper ran, as far as it says, by the keys of a run's ``facts``."""
        return {}


@dataclass(frozen=True)
class ImageTable(PaperTable):
    """A table of runs on images; FAN and Segmenter have tables of their own."""

    data: ClassVar[Data] = "images"

    def model(self, run: Described) -> str | None:
        return None if run.facts["architecture"] in (FAN, SEGMENTER) else run.model


@dataclass(frozen=True)
class SequenceTable(PaperTable):
    """A table of runs on sequences.

    Attributes:
        compared: of an ablation, its models, each with what it is compared with; other models are left out then.
        settings: what the paper ran: its row → facts, of rows that are not named those of ``""``.
    """

    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    layout: Layout = "settings"

    data: ClassVar[Data] = "sequences"

    def model(self, run: Described) -> str | None:
        return None if self.compared and run.model not in self.compared else run.model

    def worth(self, models: Collection[str]) -> bool:
        """Return whether there is a model to compare with, where the table compares any."""
        bases = {base for bases in self.compared.values() for base in bases}
        return not bases or bool(bases & {*models})

    def baselines(self, model: str) -> Sequence[str]:
        return self.compared.get(model, ()) if self.compared else super().baselines(model)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return self.settings.get(row) or self.settings.get("", {})


class GridTable(SequenceTable):
    """A table over hyperparameters: its rows and settings end in a run's own."""

    def row(self, run: Described, kind: str, row: str) -> str | None:
        return f"{row} {run.place}"

    def setting(self, run: Described, setting: str) -> str:
        return f"{setting} {run.place}"


def on_imagenet(size: str, epochs: int) -> dict[str, str]:
    """Return the facts of what the papers train on ImageNet: a vision transformer of ``12 × 192``, say."""
    facts = {"name": "ImageNet-1K", "pixels": "224 × 224 pixels", "size": size, "architecture": PLAIN}
    return {**facts, "start": "from scratch", "epochs": f"{epochs} epochs"}


def beside(numbers: Mapping[Data, Measured], paper: Paper, tables: Collection[str] = ()) -> pd.DataFrame:
    """Return a row for each number of the paper's tables that the runs have, and each label.

    Its columns are :data:`COLUMNS`: ``row`` is the paper's, or the nearest that it has; ``setting`` says what was run
    in its place, ``measured`` how (``pgd 6/255``), ``share`` of how many swapped words, ``differs`` in what it is not
    the paper's, empty where it is; ``paper`` is the paper's own number and ``paper_difference`` its difference from
    its baseline; for the rest see :func:`differences`. Accuracies in %, times in s, memory in units of 2³⁰ bytes,
    losses in nats a token.

    Args:
        numbers: by :func:`~kattn_cli.papers.values.measured`.
        tables: the paper's tables to keep, such as ``table2``; all where none is named.
    """
    found = []
    for data, known in numbers.items():
        for table in paper.tables:
            if table.data == data and (not tables or {*tables} & {*table.tables}):
                found.append(_beside(table, known, paper.printed, tables))
    found = [one for one in found if len(one)]
    joined = pd.concat(found, ignore_index=True).assign(paper_name=paper.name) if found else pd.DataFrame()
    return joined.reindex(columns=COLUMNS)


def _beside(table: PaperTable, measured: Measured, printed: Printed, only: Collection[str]) -> pd.DataFrame:
    runs = measured.runs
    models = {label: model for label, run in runs.items() if (model := table.model(run)) is not None}
    chosen = _placed(table, _chosen(table, measured, models), printed)
    if only:
        chosen = chosen[chosen["table"].isin(list(only))]
    if chosen.empty:
        return chosen
    compared = differences(chosen, KEY, models, printed, table.baselines)
    cells = zip(compared["row"], compared["label"], compared["model"], strict=True)
    return compared.assign(differs=[_unlike(runs[label].facts, table.own(model, row)) for row, label, model in cells])


def _chosen(table: PaperTable, measured: Measured, models: Mapping[str, str]) -> pd.DataFrame:
    """Return the values that belong into the table, under the paper's names of its rows.

    Costs of a run count only where its accuracy stands in the table, too.
    """
    values, runs = measured.values, measured.runs
    wanted = {(kind, metric) for kind, metrics in table.kinds.items() for metric in metrics}
    places = pd.Series(list(zip(values["kind"], values["metric"], strict=True)), index=values.index, dtype=object)
    chosen = values[places.isin(list(wanted)) & values["label"].isin(list(models))]
    of_cells = chosen[["label", "kind", "row", "setting"]].to_dict("records")
    chosen = chosen.assign(
        row=[table.row(runs[one["label"]], str(one["kind"]), str(one["row"])) for one in of_cells],
        setting=[table.setting(runs[one["label"]], str(one["setting"])) for one in of_cells],
    ).dropna(subset="row")
    if not table.worth({models[label] for label in chosen["label"]}):
        return chosen.iloc[:0]
    chosen = chosen.dropna(subset="value")
    return chosen[chosen["folder"].isin(chosen.loc[chosen["kind"] != "costs", "folder"])]


def _placed(table: PaperTable, chosen: pd.DataFrame, printed: Printed) -> pd.DataFrame:
    """Return the values with the paper's ``table`` of each: the first of its tables that has the row and metric."""
    known: dict[tuple[str, str], str] = {}
    for name in table.tables:
        for place, row, metric, _ in printed:
            if place == name:
                known.setdefault((row, metric), name)
    places = zip(chosen["row"], chosen["metric"], strict=True)
    placed = chosen.assign(table=[known.get(place, "" if table.printed_only else table.tables[0]) for place in places])
    return placed[placed["table"] != ""]


def _unlike(facts: Mapping[str, str], paper: Mapping[str, str]) -> str:
    """Return ``up to 128 tokens (the paper: up to 2,000 tokens); cpu (the paper: one V100)``, of what both say."""
    pairs = [(facts[key], theirs) for key, theirs in paper.items() if key in facts]
    return "; ".join(f"{ours} (the paper: {theirs})" for ours, theirs in pairs if ours != theirs)


def differences(
    values: pd.DataFrame,
    key: Sequence[str],
    models: Mapping[str, str],
    printed: Printed,
    baselines: Callable[[str], Sequence[str]],
) -> pd.DataFrame:
    """Return a row for each ``key`` and label, in the order in which they come.

    Columns: the key's, ``label, model, mean, low, high, seeds, paper, baseline, difference, difference_low,
    difference_high, pairs, verdict, paper_difference``. Intervals of means are Student's at 95 % over seeds. A
    difference is from the ``baseline`` (a label, of the same folder where there are several) of the same key, paired by
    seed (and by ``pair``), of ``pairs`` seeds, its variance pooled over all labels of its folder. ``verdict``: see
    :mod:`~kattn_cli.statistics.verdict`, of this difference alone; empty of a cost, none where there is no difference.

    Args:
        values: ``label, run_seed, pair, value`` and the columns of ``key``, of which ``table``, ``row`` and ``metric``
            are the first; several values of a seed count as their mean.
        models: label → the paper's model, empty where it has none such.
        baselines: the paper's model → the models it is compared with, of which the first that has runs is taken.
    """
    rows = []
    for at, peers in values.groupby(list(key), sort=False):
        named = dict(zip(key, at, strict=True))
        table, row, metric = (str(named[column]) for column in key[:3])
        for label, part in peers.groupby("label", sort=False):
            model = models[str(label)]
            base = _baseline(baselines(model), models, peers["label"], str(label))
            against = models[base] if base else next(iter(baselines(model)), "")
            paper, paper_base = (printed.get((table, row, metric, one), math.nan) for one in (model, against))
            mean, half = mean_interval(part.groupby("run_seed")["value"].mean().tolist())
            paper_difference = math.nan if model in ("", against) else paper - paper_base
            compared = (
                _apart(peers, str(label), base, metric, paper_difference) if base not in ("", label) else NOT_APART
            )
            rows.append(
                {
                    **named,
                    "label": label,
                    "model": model,
                    "mean": mean,
                    "low": mean - half,
                    "high": mean + half,
                    "seeds": part["run_seed"].nunique(),
                    "paper": paper,
                    "baseline": base,
                    **compared,
                    "paper_difference": paper_difference,
                }
            )
    return pd.DataFrame(rows)


def _baseline(wanted: Sequence[str], models: Mapping[str, str], labels: pd.Series, label: str) -> str:
    """Return a label of the first ``wanted`` model that has one, if possible in ``label``'s folder; else nothing."""
    folder = label.rpartition("/")[0]
    there = sorted(dict.fromkeys(labels), key=lambda one: one.rpartition("/")[0] != folder)
    return next((one for model in wanted for one in there if models[one] == model), "")


NOT_APART: Mapping[str, object] = {
    **dict.fromkeys(("difference", "difference_low", "difference_high"), math.nan),
    "pairs": 0,
    "verdict": None,
}
"""Of a label that has no baseline, or shares no seed with it."""


def _apart(peers: pd.DataFrame, label: str, base: str, metric: str, published: float) -> Mapping[str, object]:
    """Return the difference of a label from its baseline, paired by seed, and its verdict.

    Args:
        peers: all labels of the same key.
    """
    folder = label.partition(" ")[0].rpartition("/")[0]
    columns = {str(name): part.groupby(["run_seed", "pair"])["value"].mean() for name, part in peers.groupby("label")}
    shared = columns[label].index.intersection(columns[base].index)
    arms = {
        name: {int(str(seed)): float(value) for seed, value in _over_pairs(column.reindex(shared)).items()}
        for name, column in columns.items()
        if name in (label, base) or name.partition(" ")[0].rpartition("/")[0] == folder
    }
    (effect, *_) = compare(arms, [(label, base), *((name, base) for name in arms if name not in (label, base))])
    if not effect.seeds:
        return NOT_APART
    low, high = effect.interval()
    ends = {"difference": effect.estimate, "difference_low": low, "difference_high": high, "pairs": effect.seeds}
    margin = _margin(metric, str(peers["kind"].iloc[0]) if "kind" in peers else "", arms[base])
    if math.isnan(margin):
        return {**ends, "verdict": ""}
    (decision,) = decide([Question(effect, margin, metric not in HIGHER_IS_BETTER, published)])
    return {**ends, "verdict": decision.verdict.value}


def _over_pairs(column: pd.Series) -> pd.Series:
    """Return the mean of each seed, of those that have one."""
    return column.groupby("run_seed").mean().dropna()


def _margin(metric: str, kind: str, base: Mapping[int, float]) -> float:
    """Return the margin of a metric in its own unit, nan of a cost."""
    if metric in ("perplexity", "swapped_perplexity"):
        return PERPLEXED.value / 100 * sum(base.values()) / len(base)
    if metric in ("top1", "top5") and kind in OF_KINDS:
        return OF_KINDS[kind].value
    return MARGINS[metric].value if metric in MARGINS else math.nan


def baselines_first(tables: pd.DataFrame) -> list[str]:
    """Return the labels: the paper's baselines, its other models by name, then those that it has not."""
    bases = set(tables["baseline"])
    models = dict(zip(tables["label"].astype(str), tables["model"].astype(str), strict=True))
    return sorted(models, key=lambda label: (label not in bases, not models[label], models[label], label))
