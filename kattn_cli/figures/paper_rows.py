"""Numbers of runs beside a paper's: the mean over seeds, its interval, and the difference from the paper's baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import pandas as pd

from kattn_cli.analysis.paired import FEW_SEEDS
from kattn_cli.analysis.statistics import mean_interval

UNTOLD = "not told apart"
Published = Mapping[tuple[str, str, str, str], float]
"""By table, row, metric and model."""


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
    from the ``baseline`` (a label) of the same key, paired by seed (and by ``pair``, where ``values`` has it), of
    ``pairs`` seeds. ``verdict``: ``better``, ``worse`` or ``not told apart`` (the interval of the difference holds 0,
    or there are fewer than three seeds).

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
            base = _baseline(baselines(model), models, peers["label"])
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


def _baseline(wanted: Sequence[str], models: Mapping[str, str], labels: pd.Series) -> str:
    """The first label of the first of the ``wanted`` models that has one here; else nothing."""
    there = list(dict.fromkeys(labels))
    return next((label for model in wanted for label in there if models[label] == model), "")


def _apart(part: pd.DataFrame, base: pd.DataFrame, lower_is_better: bool) -> dict[str, object]:
    """The difference from the baseline, paired by seed."""
    together = [column for column in ("run_seed", "pair") if column in part]
    ours, theirs = (one.groupby(together)["value"].mean() for one in (part, base))
    gains = (ours - theirs).dropna().groupby("run_seed").mean().tolist()
    if not gains:
        return {}
    mean, half = mean_interval(gains)
    verdict = UNTOLD
    if len(gains) >= FEW_SEEDS and abs(mean) > half:
        verdict = "better" if (mean > 0) != lower_is_better else "worse"
    ends = {"difference_low": mean - half, "difference_high": mean + half}
    return {"difference": mean, **ends, "pairs": len(gains), "verdict": verdict}


def baselines_first(tables: pd.DataFrame) -> list[str]:
    """The labels: the paper's baselines, its other models by name, then those that it has not."""
    bases = set(tables["baseline"])
    models = dict(zip(tables["label"].astype(str), tables["model"].astype(str), strict=True))
    return sorted(models, key=lambda label: (label not in bases, not models[label], models[label], label))
