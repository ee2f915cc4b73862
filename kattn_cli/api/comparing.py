"""Differences between recipes, judged as studies judge them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kattn_cli.api.measuring import Chosen
from kattn_cli.api.runs import RESULTS, Run, as_runs
from kattn_cli.errors import KattnError, did_you_mean
from kattn_cli.statistics.verdict import Question, decide
from kattn_cli.studies.evidence import numbers_of
from kattn_cli.studies.judgement import effects
from kattn_cli.studies.study import Cell, Measure

if TYPE_CHECKING:
    import pandas as pd


def compare(
    runs: Chosen,
    *,
    baseline: str = "softmax",
    table: str = "eval.csv",
    value: str = "top1",
    where: Mapping[str, Cell] | None = None,
    margin: float = 1.0,
    lower_is_better: bool = False,
    results: str | Path = RESULTS,
) -> pd.DataFrame:
    """Return each recipe's difference from the baseline over the seeds that both have, with its verdict.

    Where the runs kept which images were right, seeds and images are crossed; else the variance over seeds is pooled.
    p-values are corrected for all comparisons of the table.

    Args:
        runs: of several recipes and seeds, or their names.
        baseline: a label, a recipe's name, or the last part of that.
        table, value, where: the column, and the rows of it that count: ``where={"attack": "pgd", "epsilon": "4/255"}``.
            Of ``eval.csv`` by default the clean test set.
        margin: the smallest difference that matters, in the unit of the column.

    Returns:
        Columns ``label, baseline, difference, low, high, p_apart, p_within, seeds, images, verdict``.

    Raises:
        KattnError: if there is no such baseline, with the nearest name, or the table lacks a column.

    >>> kattn.compare("quickstart", baseline="softmax")
    """
    import pandas as pd

    arms: dict[str, dict[int, Run]] = {}
    for run in as_runs(runs, results):
        arms.setdefault(run.label, {})[run.seed] = run
    base = _baseline(baseline, {label: next(iter(by_seed.values())).name for label, by_seed in arms.items()})
    measure = Measure(
        run="eval", table=table, value=value, where=dict(where or {}), margin=margin, lower_is_better=lower_is_better
    )
    numbers = numbers_of(measure, value, {label: (by_seed, "") for label, by_seed in arms.items()})
    found = effects([(label, base) for label in arms if label != base], numbers)
    decisions = decide([Question(effect, margin, lower_is_better) for effect in found.values()])
    rows = []
    for (label, _), decision in zip(found, decisions, strict=True):
        effect = decision.question.effect
        low, high = effect.interval()
        rows.append(
            {
                "label": label,
                "baseline": base,
                "difference": effect.estimate,
                "low": low,
                "high": high,
                "p_apart": decision.p_apart,
                "p_within": decision.p_within,
                "seeds": effect.seeds,
                "images": effect.images,
                "verdict": decision.verdict.value,
            }
        )
    columns = ["label", "baseline", "difference", "low", "high", "p_apart", "p_within", "seeds", "images", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _baseline(wanted: str, names: Mapping[str, str]) -> str:
    """Return the label of the baseline. ``names``: label → the recipe's name.

    Raises:
        KattnError: if nothing is called so, or several recipes are.
    """
    found = [label for label, name in names.items() if wanted in (label, name, name.rpartition("/")[2])]
    if len(found) != 1:
        hint = did_you_mean(wanted, names) or f"; there are {', '.join(names)}"
        raise KattnError(f"baseline {wanted}: {'several recipes are' if found else 'no recipe is'} called so{hint}")
    return found[0]
