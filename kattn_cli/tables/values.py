"""Every number of runs, whichever task they are of: tidy rows, and which rows of a table of theirs count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kattn_cli.runs.bits import CORRECT
from kattn_cli.runs.run import Run
from kattn_cli.tables.bits import Right, right_of
from kattn_cli.tables.corruption_errors import ALL_TYPES, SEVERITIES, measured_together
from kattn_cli.tables.frames import (
    attack_frame,
    clean_rows,
    errors_of_runs,
    frame,
    shared_folder,
)
from kattn_cli.tables.measurements import apart, of_one_checkpoint, settings
from kattn_cli.tables.measures import BEST, MEASURES, best_value, chosen_by

COLUMNS = ["label", "run_seed", "quantity", "value"]
PERPLEXITY_CSV, ROLLOUTS_CSV = "perplexity.csv", "rollouts.csv"
OF_CLEAN = ("label", "run_seed", "folder", "images", "checkpoint", "top1")
"""What a row of an attack says of the clean images."""
SEGMENTATION = ("mean_accuracy", "mean_iou")
"""The measures of segmentation, by their columns."""


def values(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row for each label, seed and quantity of the runs: ``label, run_seed, quantity, value``.

    Quantities: ``params``, ``clean``, one for each measurement under attack (``pgd 4/255``), ``train s``. Those
    measured on fewer images than the rest say so: ``pgd 4/255 (300 images)``. ``mean error`` is under corruption, over
    types and severities. Language models have ``perplexity`` and ``perplexity, 10 % swapped``, of their own corpus, and
    ``perplexity of ptb``, all of the test split. Segmenters have ``mean IoU`` and ``mean IoU, corrupted``; what acts in
    an environment the ``return`` that it reached when asked for one, and D4RL's ``normalised score`` for the greatest.
    Runs on a kind of data that has no table of its own have what their best epoch was worth: ``best explained``.
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
    known = [part.dropna(subset="value")[COLUMNS] for part in parts if len(part)]
    there = [part for part in known if len(part)]
    return pd.concat(there, ignore_index=True) if there else pd.DataFrame(columns=COLUMNS)


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
    table = _accuracy_rows(runs)
    return table[["label", "run_seed", "quantity", "value"]] if len(table) else table


def right_by_quantity(runs: Sequence[Run]) -> dict[str, dict[str, Right]]:
    """Return quantity → label → seed → whether each image was right, of the accuracies in :func:`values`.

    Labels of which a row does not say so are left out.
    """
    table = _accuracy_rows(runs, correct=True)
    if CORRECT not in table:
        return {}
    found: dict[str, dict[str, Right]] = {}
    for quantity, rows in table.groupby("quantity", sort=False):
        said = rows[CORRECT].notna().groupby(rows["label"]).transform("all")
        if said.any():
            labels = rows[said].groupby("label", sort=False)
            found[str(quantity)] = right_of({str(label): part for label, part in labels})
    return found


def _accuracy_rows(runs: Sequence[Run], correct: bool = False) -> pd.DataFrame:
    """Return rows of ``eval.csv`` and ``attacks.csv``, one a label, seed and ``quantity``, with its ``value``."""
    attacked, parts = attack_frame(runs, correct=correct), []
    if not attacked.empty:
        by_images = attacked.sort_values("images", kind="stable").assign(top1=lambda rows: rows["clean_top1"])
        parts.append(by_images[[one for one in OF_CLEAN if one in by_images]])
    if not (evaluated := frame(runs, "eval.csv", correct=correct)).empty:
        parts.append(clean_rows(evaluated))
    if parts:
        clean = pd.concat(parts)
        words = apart(clean, [], settings(clean, ["images", "split", "corruption", "severity"]))
        parts = [clean.assign(quantity=[f"clean {one}".rstrip() for one in words], value=clean["top1"])]
    if not attacked.empty:
        parts.append(attacked.assign(quantity=attacked["name"], value=attacked["top1"]))
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts)
    if "images" in table:
        most = table["images"].max()
        table["quantity"] = [
            f"{quantity} ({images:,.0f} images)" if images < most and "images)" not in quantity else quantity
            for quantity, images in zip(table["quantity"], table["images"], strict=True)
        ]
    return table.drop_duplicates(["label", "run_seed", "quantity"], keep="last")


_TEXT = ["corpus", "split", "swap_share"]


def _perplexity(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the mean perplexity over draws of the swapped words, of the test splits."""
    rows = perplexities(runs)
    rows = rows[rows["split"] == "test"].copy()
    if rows.empty:
        return rows
    words = apart(rows, [*_TEXT, "swap_seed"], settings(rows, [*_TEXT, "swap_seed"]))
    texts = [
        f"perplexity{f' of {corpus}' if corpus else ''}{f', {100 * share:g} % swapped' if share else ''}"
        for corpus, share in zip(rows["corpus"], rows["swap_share"], strict=True)
    ]
    rows["quantity"] = [f"{text} {more}".rstrip() for text, more in zip(texts, words, strict=True)]
    means = rows.groupby(["label", "run_seed", "quantity"], sort=False)["perplexity"].mean()
    return means.rename("value").reset_index()


def _segmented(runs: Sequence[Run]) -> pd.DataFrame:
    rows = segmentation_summary(segmentation_frame(frame(runs, "segmentation.csv")))
    if rows.empty:
        return rows
    corrupted = rows["corrupted_mean_iou"].where(rows["types"] == ALL_TYPES)
    named = rows.assign(**{"mean IoU": rows["mean_iou"], "mean IoU, corrupted": corrupted})
    words = apart(rows, [], ["checkpoint", "images"])
    values = ["mean IoU", "mean IoU, corrupted"]
    melted = named.assign(apart=words).melt(
        ["label", "run_seed", "apart"], values, var_name="quantity", ignore_index=False
    )
    melted["quantity"] = [
        f"{one} {more}".rstrip() for one, more in zip(melted["quantity"], melted["apart"], strict=True)
    ]
    return melted.sort_index(kind="stable")


def _returns(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the mean score and returns over episodes."""
    acted = asked_for(runs)
    if acted.empty:
        return acted
    returns = acted.assign(
        quantity=[
            f"return asked for {target:,g} {words}".rstrip()
            for target, words in zip(acted["target_return"], acted["apart"], strict=True)
        ],
        value=acted["return"],
    )
    scores = greatest_asked(acted)
    named = [f"normalised score {words}".rstrip() for words in scores["apart"]]
    scores = scores.assign(quantity=named, value=scores["normalised_score"])
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


_OF_A_TYPE = ["corruption", "severity", "split", "images", "textures"]


def _corrupted(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the mean error under corruption; each number of types and images is a quantity of its own."""
    rows = []
    for together, errors in errors_of_runs(frame(runs, "eval.csv")):
        types = "" if len(errors) == ALL_TYPES else f", {len(errors)} types"
        quantity = f"mean error ({int(together['images'].max()):,} images{types})"
        made = together[together["severity"] > 0].iloc[-1]
        rows.append({**made, "quantity": quantity, "value": float(errors.mean())})
    table = pd.DataFrame(rows)
    if table.empty:
        return table
    words = apart(table, ["quantity"], settings(table, [*_OF_A_TYPE, "quantity", "value"]))
    return table.assign(quantity=[f"{one} {more}".rstrip() for one, more in zip(table["quantity"], words, strict=True)])


def perplexities(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the rows of ``perplexity.csv`` of the chosen weights, one for each label, seed and measurement.

    Of several, that of the whole text (``asked`` is ``all``), then of the smallest stride (in which a token sees most
    of what is before it), then the last. ``split`` is ``test`` of other corpora, too.
    """
    table = frame(runs, PERPLEXITY_CSV)
    if table.empty:
        return pd.DataFrame(columns=["corpus", "split", "swap_share", "folder"])
    chosen = of_one_checkpoint(table)
    corpora = [one if isinstance(one, str) else "" for one in chosen["corpus"]]
    splits = ["test" if corpus else split for corpus, split in zip(corpora, chosen["split"], strict=True)]
    filled = chosen.assign(corpus=corpora, split=splits, swap_seed=chosen["swap_seed"].fillna(0))
    ordered = filled.assign(part=filled["asked"].astype(str) != "all").sort_values(
        ["part", "stride"], ascending=False, kind="stable"
    )
    same = ["folder", "corpus", "split", "swap_share", "swap_seed"]
    return ordered.drop_duplicates(same, keep="last").sort_index()


def own_perplexities(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the rows of the runs' own corpora, of what was not trained on."""
    rows = perplexities(runs)
    return rows[(rows["corpus"] == "") & rows["split"].isin(["validation", "test"])]


def asked_for(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row for each episode of each run's best weights, or else of its last.

    ``apart``: what differs between runs or within one, beside target and episode: the seed of the episodes, say.
    """
    acted = of_one_checkpoint(frame(runs, ROLLOUTS_CSV))
    if acted.empty:
        return acted
    each = ["environment", "target_return", "episode"]
    return acted.assign(apart=apart(acted, [], settings(acted, each)))


def greatest_asked(acted: pd.DataFrame) -> pd.DataFrame:
    """Return of each run the episodes that were asked for the most."""
    return acted[acted["target_return"] == acted.groupby("folder")["target_return"].transform("max")]


def segmentation_frame(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of several runs' ``segmentation.csv`` that are of the test set and belong together, run by run.

    The clean row, severity 0, and those of the types of which all five severities were measured. Of a run without such
    types the clean row of the most images, the last of these.
    """
    if measured.empty:
        return measured
    parts = [_segmented_together(part) for _, part in measured.groupby(["label", "run_seed"], sort=False)]
    return pd.concat(parts, ignore_index=True)


def segmentation_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each label and seed of a :func:`segmentation_frame`.

    Columns ``label``, ``mechanism``, ``run_seed``, ``folder``, ``images``, ``mean_accuracy``, ``mean_iou`` of the
    clean images, ``corrupted_mean_accuracy``, ``corrupted_mean_iou``: means over types and severities, nan without
    any; ``types``.
    """
    found: list[dict[str, Any]] = []
    of_runs = rows.groupby(["label", "mechanism", "run_seed"], sort=False) if len(rows) else ()
    for (label, mechanism, seed), part in of_runs:
        clean, corrupted = part[part["severity"] == 0], part[part["severity"] > 0]
        if clean.empty:
            continue
        row = {"label": label, "mechanism": mechanism, "run_seed": seed, "folder": clean["folder"].iloc[-1]}
        row |= {"images": int(clean["images"].iloc[-1]), "checkpoint": clean["checkpoint"].iloc[-1]}
        row |= {name: float(clean[name].iloc[-1]) for name in SEGMENTATION}
        row |= {f"corrupted_{name}": corrupted[name].mean() for name in SEGMENTATION}
        found.append({**row, "types": corrupted["corruption"].nunique()})
    return pd.DataFrame(found)


def _segmented_together(rows: pd.DataFrame) -> pd.DataFrame:
    test = of_one_checkpoint(rows[rows["split"] == "test"])
    together = measured_together(test)
    if together.empty:
        return test[test["severity"] == 0].sort_values("images", kind="stable").iloc[-1:]
    complete = together.groupby("corruption")["severity"].agg(set)
    names = [name for name, found in complete.items() if found >= SEVERITIES]
    return together[(together["severity"] == 0) | together["corruption"].isin(names)]


@dataclass(frozen=True)
class TrainingCosts:
    """One run's manifest, its rows of the training split, one an epoch, and its costs by their units.

    ``costs``: ``seconds_per_epoch``, ``seconds_per_1k_steps`` (medians over epochs), ``memory_gb`` (in units of 2³⁰
    bytes; nan where it was not measured).
    """

    folder: str
    manifest: Mapping[str, Any]
    rows: pd.DataFrame
    costs: Mapping[str, float]


def training_costs(runs: Sequence[Run]) -> Iterator[TrainingCosts]:
    """Yield the costs of each run that has trained an epoch."""
    manifests = {str(run.folder): run.manifest for run in runs}
    table = frame(runs, "metrics.csv")
    if table.empty:
        return
    for folder, rows in table[table["split"] == "train"].groupby("folder", sort=False):
        manifest = manifests[str(folder)]
        passed = rows[["epoch", "step", "seconds"]].diff().fillna(rows[["epoch", "step", "seconds"]])
        costs = {
            "seconds_per_epoch": (passed["seconds"] / passed["epoch"]).median(),
            "seconds_per_1k_steps": (1000 * passed["seconds"] / passed["step"]).median(),
            "memory_gb": (manifest.get("peak_memory_mib") or float("nan")) / 1024,
        }
        yield TrainingCosts(str(folder), manifest, rows, costs)
