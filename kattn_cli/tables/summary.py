"""The summary of runs: clean accuracy or perplexity, that under attack, size and time, over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.runs.run import Run
from kattn_cli.tables.corruption_errors import ALL_TYPES
from kattn_cli.tables.frames import attack_frame, clean_rows, errors_of_runs, frame, shared_folder
from kattn_cli.tables.measures import BEST, MEASURES, best_value, chosen_by, measure_of
from kattn_cli.tables.perplexities import perplexities
from kattn_cli.tables.rollouts import asked_for, greatest_asked
from kattn_cli.tables.segmentation import segmentation_frame, segmentation_summary
from kattn_cli.tables.statistics import mean_interval
from kattn_cli.tables.text import listed, mean_and_half


def summary(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row for each label and quantity: ``label, quantity, mean, half, std, seeds``.

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
        _best(runs),
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
    """Return one key of each run's manifest."""
    rows = [
        {"label": label, "run_seed": run.seed, "value": run.manifest.get(key)}
        for label, run in zip(labels_of(runs), runs, strict=True)
    ]
    return pd.DataFrame(rows).assign(quantity=quantity)


def labels_of(runs: Sequence[Run]) -> list[str]:
    """Return the runs' labels without the folder that all share."""
    folder = shared_folder(run.label for run in runs)
    return [run.label.removeprefix(folder) for run in runs]


def _accuracies(runs: Sequence[Run]) -> pd.DataFrame:
    """Return clean accuracy, and that under each attack; of fewer images than the rest, the name says of how many."""
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
    """Return the mean perplexity over draws of the swapped words, of the test splits."""
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
    rows = segmentation_summary(segmentation_frame(frame(runs, "segmentation.csv")))
    if rows.empty:
        return rows
    corrupted = rows["corrupted_mean_iou"].where(rows["types"] == ALL_TYPES)
    named = rows.assign(**{"mean IoU": rows["mean_iou"], "mean IoU, corrupted": corrupted})
    values = ["mean IoU", "mean IoU, corrupted"]
    melted = named.melt(["label", "run_seed"], values, var_name="quantity", ignore_index=False)
    return melted.sort_index(kind="stable")


def _returns(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the mean score and returns over episodes."""
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


def _best(runs: Sequence[Run]) -> pd.DataFrame:
    """Return what the best epoch was worth, of runs on a kind of data that has no table of its own."""
    rows = [
        {"label": label, "run_seed": run.seed, "quantity": f"{BEST}{measure.label}", "value": best_value(run.manifest)}
        for label, run in zip(labels_of(runs), runs, strict=True)
        if (measure := chosen_by(run.manifest)).name not in MEASURES
    ]
    return pd.DataFrame(rows)


def _corrupted(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the mean error under corruption; each number of types and images is a quantity of its own."""
    rows = []
    for together, errors in errors_of_runs(frame(runs, "eval.csv")):
        one = together.iloc[0]
        types = "" if len(errors) == ALL_TYPES else f", {len(errors)} types"
        quantity = f"mean error ({int(together['images'].max()):,} images{types})"
        value = float(errors.mean())
        rows.append({"label": one["label"], "run_seed": one["run_seed"], "quantity": quantity, "value": value})
    return pd.DataFrame(rows)


FACTS = ("params", "train s", "seeds")
MOST_COLUMNS = 7
"""Quantities that fit beside each other; with more, and fewer runs, the runs stand side by side instead."""


def print_summary(runs: Sequence[Run]) -> pd.DataFrame:
    """Print mean ± half of the 95 % Student-t interval (standard deviation) over seeds; return the tidy table."""
    table = summary(runs)
    cells = {
        (label, quantity): _cell(quantity, mean, half, std)
        for label, quantity, mean, half, std in zip(
            *(table[column] for column in ("label", "quantity", "mean", "half", "std")), strict=True
        )
    }
    seeds = table.groupby("label", sort=False)["seeds"].max()
    cells |= {(label, "seeds"): str(count) for label, count in seeds.items()}
    labels, quantities = (list(dict.fromkeys(part)) for part in zip(*cells, strict=True))
    console.print(f"\n{_measured(quantities)}, mean ± half of the 95 % interval (standard deviation) over seeds\n")
    if len(quantities) <= max(MOST_COLUMNS, len(labels)):
        print_wide(["run", *quantities], [[one, *(cells.get((one, q), "") for q in quantities)] for one in labels])
    else:
        print_wide(["", *labels], [[q, *(cells.get((one, q), "") for one in labels)] for q in quantities])
    console.print()
    return table


def _measured(quantities: Sequence[str]) -> str:
    kinds = list(dict.fromkeys(measure_of(one).in_words for one in quantities if one not in FACTS))
    if kinds in ([], ["top-1 in %"]):
        return "Top-1 on the test set in %"
    all_kinds = listed(kinds)
    where = "in new episodes" if {"return", "normalised score"} & {*kinds} else "on the test set"
    return f"{all_kinds[0].upper()}{all_kinds[1:]}{',' * (len(kinds) > 1)} {where}"


def _cell(quantity: str, mean: float, half: float, std: float) -> str:
    if quantity == "params":
        return f"{mean:,.0f}"
    decimals = measure_of(quantity).decimals
    if quantity == "train s" or math.isnan(half):
        return f"{mean:.{decimals}f}"
    return f"{mean_and_half(mean, half, decimals)} ({std:.{decimals}f})"
