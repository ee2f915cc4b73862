"""The table that compares runs: clean accuracy or perplexity, that under attack, size and time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kattn_cli.runs.run import Run
from kattn_cli.tables.corruption_errors import ALL_TYPES
from kattn_cli.tables.frames import attack_frame, clean_rows, errors_of_runs, frame, shared_folder
from kattn_cli.tables.image_values import segmented
from kattn_cli.tables.rollouts import asked_for, greatest_asked
from kattn_cli.tables.sequence_values import perplexities
from kattn_cli.tables.statistics import mean_interval


def comparison(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a label: ``quantity → [values over seeds]``, as tidy rows ``label, quantity, mean, half, std, seeds``.

    Quantities: ``params``, ``clean``, one for each measurement under attack (``pgd 4/255``), ``train s``. Those
    measured on fewer images than the rest say so: ``pgd 4/255 (300 images)``. ``mean error`` is under corruption, over
    types and severities. Language models have ``perplexity`` and ``perplexity, 10 % swapped``, of their own corpus, and
    ``perplexity of ptb``, all of the test split. Segmenters have ``mean IoU`` and ``mean IoU, corrupted``; what acts in
    an environment the ``return`` that it reached when asked for one, and D4RL's ``normalised score`` for the greatest.
    """
    parts = [
        _fact(runs, "params", "parameters"),
        _accuracies(runs),
        _corrupted(runs),
        _perplexity(runs),
        _segmented(runs),
        _returns(runs),
        _fact(runs, "train s", "train_seconds"),
    ]
    known = [part.dropna(subset="value") for part in parts if len(part)]
    values = pd.concat([part for part in known if len(part)], ignore_index=True)
    rows = []
    for (label, quantity), part in values.groupby(["label", "quantity"], sort=False):
        mean, half = mean_interval(part["value"].tolist())
        spread = {"mean": mean, "half": half, "std": part["value"].std()}
        rows.append({"label": label, "quantity": quantity, **spread, "seeds": len(part)})
    return pd.DataFrame(rows)


def _fact(runs: Sequence[Run], quantity: str, key: str) -> pd.DataFrame:
    """One key of each run's manifest."""
    folder = shared_folder(run.label for run in runs)
    rows = [
        {"label": run.label.removeprefix(folder), "run_seed": run.seed, "value": run.manifest.get(key)} for run in runs
    ]
    return pd.DataFrame(rows).assign(quantity=quantity)


def _accuracies(runs: Sequence[Run]) -> pd.DataFrame:
    """Clean, and under each attack; what was measured on fewer images than the rest says on how many."""
    attacked, parts = attack_frame(runs), []
    if not attacked.empty:
        by_images = attacked.sort_values("images", kind="stable")
        parts.append(by_images.assign(quantity="clean", value=by_images["clean_top1"]))
    if not (evaluated := frame(runs, "eval.csv")).empty:
        clean = clean_rows(evaluated)
        parts.append(clean.assign(quantity="clean", value=clean["top1"]))
    if not attacked.empty:
        parts.append(attacked.assign(quantity=attacked["name"], value=attacked["top1"]))
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts)
    if "images" in table:
        most = table["images"].max()
        table["quantity"] = [
            f"{quantity} ({images:,.0f} images)" if images < most else quantity
            for quantity, images in zip(table["quantity"], table["images"], strict=True)
        ]
    latest = table.drop_duplicates(["label", "run_seed", "quantity"], keep="last")
    return latest[["label", "run_seed", "quantity", "value"]]


def _perplexity(runs: Sequence[Run]) -> pd.DataFrame:
    """Of the test splits, with as many words swapped; the mean over draws of the words."""
    told = perplexities(runs)
    told = told[told["split"] == "test"].copy()
    if told.empty:
        return told
    told["quantity"] = [
        f"perplexity{f' of {corpus}' if corpus else ''}{f', {100 * share:g} % swapped' if share else ''}"
        for corpus, share in zip(told["corpus"], told["swap_share"], strict=True)
    ]
    means = told.groupby(["label", "run_seed", "quantity"], sort=False)["perplexity"].mean()
    return means.rename("value").reset_index()


def _segmented(runs: Sequence[Run]) -> pd.DataFrame:
    values = pd.DataFrame(one for one in segmented(runs) if one["metric"] == "mean_iou")
    if values.empty:
        return values
    named = {"ADE20K": "mean IoU", "corrupted ADE20K": "mean IoU, corrupted"}
    return values.assign(quantity=values["row"].map(named))[["label", "run_seed", "quantity", "value"]]


def _returns(runs: Sequence[Run]) -> pd.DataFrame:
    """Means over episodes."""
    acted = asked_for(runs)
    if acted.empty:
        return acted
    returns = acted.assign(
        quantity=[f"return asked for {target:,g}" for target in acted["target_return"]], value=acted["return"]
    )
    scores = greatest_asked(acted)
    scores = scores.assign(quantity="normalised score", value=scores["normalised_score"])
    means = pd.concat([scores, returns]).groupby(["label", "run_seed", "quantity"], sort=False)["value"].mean()
    return means.reset_index()


def _corrupted(runs: Sequence[Run]) -> pd.DataFrame:
    """The mean error under corruption; each number of types and images is a quantity of its own."""
    rows = []
    for together, errors in errors_of_runs(frame(runs, "eval.csv")):
        one = together.iloc[0]
        types = "" if len(errors) == ALL_TYPES else f", {len(errors)} types"
        quantity = f"mean error ({int(together['images'].max()):,} images{types})"
        value = float(errors.mean())
        rows.append({"label": one["label"], "run_seed": one["run_seed"], "quantity": quantity, "value": value})
    return pd.DataFrame(rows)
