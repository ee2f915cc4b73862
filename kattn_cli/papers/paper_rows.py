"""Numbers of runs beside a paper's: the mean over seeds, its interval, and the difference from the paper's baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import pandas as pd

from kattn_cli.papers.published import Published
from kattn_cli.tables.comparison import FEW_SEEDS, UNDECIDED, Paired
from kattn_cli.tables.statistics import mean_interval


def beside_the_paper(
    values: pd.DataFrame,
    key: Sequence[str],
    models: Mapping[str, str],
    published: Published,
    baselines: Callable[[str], Sequence[str]],
    lower_is_better: Collection[str],
) -> pd.DataFrame:
    """One row for each ``key`` and label, in the order in which they come.

    Columns: the key's, ``label, model, mean, low, high, seeds, paper, baseline, difference, difference_low,
    difference_high, pairs, verdict, paper_difference``. Intervals are Student's at 95 % over seeds. A difference is
    from the ``baseline`` (a label, of the same folder where there are several) of the same key, paired by seed (and by
    ``pair``, where ``values`` has it), of ``pairs`` seeds. ``verdict``: ``better``, ``worse`` or ``not told apart``
    (the interval of the difference holds 0, or there are fewer than three seeds); none where there is no difference.

    Args:
        values: ``label, run_seed, value`` and the columns of ``key``, of which ``table``, ``row`` and ``metric`` are
            the first; several values of a seed count as their mean.
        models: label → the paper's model, empty where it has none such.
        baselines: the paper's model → the models it is compared with, of which the first that has runs is taken.
        lower_is_better: metrics of which less is better.
    """
    rows = []
    for at, peers in values.groupby(list(key), sort=False):
        named = dict(zip(key, at, strict=True))
        table, row, metric = (str(named[column]) for column in key[:3])
        for label, part in peers.groupby("label", sort=False):
            model = models[str(label)]
            base = _baseline(baselines(model), models, peers["label"], str(label))
            against = models[base] if base else next(iter(baselines(model)), "")
            paper, paper_base = (published.get((table, row, metric, one), math.nan) for one in (model, against))
            mean, half = mean_interval(part.groupby("run_seed")["value"].mean().tolist())
            other = peers[peers["label"] == base] if base != label else peers.iloc[:0]
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
                    **_apart(part, other, metric in lower_is_better),
                    "paper_difference": math.nan if model in ("", against) else paper - paper_base,
                }
            )
    return pd.DataFrame(rows)


def _baseline(wanted: Sequence[str], models: Mapping[str, str], labels: pd.Series, label: str) -> str:
    """The first of the ``wanted`` models that has a label here, ``label``'s own folder before others; else nothing."""
    folder = label.rpartition("/")[0]
    there = sorted(dict.fromkeys(labels), key=lambda one: one.rpartition("/")[0] != folder)
    return next((one for model in wanted for one in there if models[one] == model), "")


def _apart(part: pd.DataFrame, base: pd.DataFrame, lower_is_better: bool) -> dict[str, object]:
    """The difference from the baseline, paired by seed."""
    ends = dict.fromkeys(("difference", "difference_low", "difference_high"), math.nan)
    nothing: dict[str, object] = {**ends, "pairs": 0, "verdict": None}
    if base.empty:
        return nothing
    together = [column for column in ("run_seed", "pair") if column in part]
    ours, theirs = (one.groupby(together)["value"].mean() for one in (part, base))
    gains = (ours - theirs).dropna().groupby("run_seed").mean().tolist()
    if not gains:
        return nothing
    found = Paired(tuple(gains))
    mean, half = found.interval
    verdict = UNDECIDED if found.seeds < FEW_SEEDS else found.verdict(lower_is_better)
    ends = {"difference": mean, "difference_low": mean - half, "difference_high": mean + half}
    return {**ends, "pairs": len(gains), "verdict": verdict}


def tables_of(tables: Sequence[str], published: Published) -> dict[tuple[str, str], str]:
    """Row and metric → the first of these tables of the paper that has them."""
    found: dict[tuple[str, str], str] = {}
    for one in tables:
        for table, row, metric, _ in published:
            if table == one:
                found.setdefault((row, metric), table)
    return found


def unlike(facts: Mapping[str, str], paper: Mapping[str, str]) -> str:
    """``up to 128 tokens (the paper: up to 2,000 tokens); cpu (the paper: one V100)``, of what both say."""
    pairs = [(facts[key], theirs) for key, theirs in paper.items() if key in facts]
    return "; ".join(f"{ours} (the paper: {theirs})" for ours, theirs in pairs if ours != theirs)


def baselines_first(tables: pd.DataFrame) -> list[str]:
    """The labels: the paper's baselines, its other models by name, then those that it has not."""
    bases = set(tables["baseline"])
    models = dict(zip(tables["label"].astype(str), tables["model"].astype(str), strict=True))
    return sorted(models, key=lambda label: (label not in bases, not models[label], models[label], label))
