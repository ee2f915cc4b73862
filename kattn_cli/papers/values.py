"""The numbers of runs in the papers' words, one row a number and seed, whichever paper they are to be laid beside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from kattn_cli.papers.described import CORPORA, Described, image_run, is_sequence_run, sequence_run
from kattn_cli.runs.run import Run
from kattn_cli.tables.corruption_errors import ALL_TYPES
from kattn_cli.tables.frames import attack_frame, clean_rows, errors_of_runs, frame
from kattn_cli.tables.measurements import apart, of_one_checkpoint, settings
from kattn_cli.tables.values import (
    SEGMENTATION,
    asked_for,
    greatest_asked,
    perplexities,
    segmentation_frame,
    segmentation_summary,
    training_costs,
)

COLUMNS = ["kind", "row", "metric", "setting", "measured", "share", "label", "run_seed", "pair", "value", "folder"]
SHIFTED = {"IN-R": r"(imagenet|in)[-_ ]?r", "IN-A": r"(imagenet|in)[-_ ]?a"}
"""Folders of images of ImageNet's classes, by which the RPC paper gives accuracies and no AUPR."""
Numbers = Iterator[dict[str, Any]]
ByFolder = Mapping[str, Described]
Data = Literal["images", "sequences"]


@dataclass(frozen=True)
class Measured:
    """The numbers of some runs, with the columns :data:`COLUMNS`, and what the run of each label is."""

    values: pd.DataFrame
    runs: Mapping[str, Described]


def measured(runs: Sequence[Run]) -> dict[Data, Measured]:
    """Return the numbers of the runs on images, and of those on sequences.

    Labels lose the folder that all runs on images share, or all on sequences.
    """
    of_sequences = {str(run.folder): run for run in runs if is_sequence_run(run)}
    of_images = {str(run.folder): run for run in runs if str(run.folder) not in of_sequences}
    images = _measured(image_values(list(of_images.values())), of_images, image_run)
    settings = {label: run.setting() for label, run in images.runs.items()}
    images = Measured(images.values.assign(setting=images.values["label"].map(settings)), images.runs)
    described = {folder: sequence_run(run) for folder, run in of_sequences.items()}
    values = sequence_values(list(of_sequences.values()), described)
    return {"images": images, "sequences": _measured(values, described, lambda run: run)}


def _measured(values: pd.DataFrame, by_folder: Mapping[str, Any], describe: Callable[[Any], Described]) -> Measured:
    folders = dict(zip(values["label"], values["folder"], strict=True))
    return Measured(values, {label: describe(by_folder[folder]) for label, folder in folders.items()})


def image_values(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row for each number, label and seed of runs on images, with the columns :data:`COLUMNS`.

    ``kind``: ``clean``, ``shifted`` (IN-R, IN-A), ``ood`` (AUPR), ``corrupted`` (means over types), ``by_type``,
    ``attacked``, ``segmented``, ``costs``. ``row``: as the RPC paper names it. ``measured``: how it was measured, in
    words. Only what has the same ``pair`` can be compared: times and memory of one device. ``setting`` is empty.
    """
    evaluated, attacked = frame(runs, "eval.csv"), attack_frame(runs)
    clean = [*_clean(evaluated)]
    rows = [*clean, *_clean_where_attacked(attacked, {row["folder"] for row in clean}), *_folders(evaluated)]
    rows += _corrupted(evaluated, frame(runs, "corruption_errors.csv"))
    rows += [*_attacked(attacked), *_segmented(runs), *_image_costs(runs)]
    return pd.DataFrame(rows, columns=COLUMNS).dropna(subset="value")


def sequence_values(runs: Sequence[Run], described: ByFolder) -> pd.DataFrame:
    """Return a row for each number, label and seed of runs on sequences, with the columns :data:`COLUMNS`.

    ``kind``: ``series``, ``lra``, ``sentences``, ``language`` (perplexity of the run's own corpus; ``row`` is the
    split), ``zero_shot`` (loss on each corpus, its own too), ``control`` (normalised scores) or ``control_costs``.
    ``share``: of swapped words. ``setting``: what was run. Only what has the same ``pair`` can be compared: times and
    memory of one device, texts of as many tokens. ``measured`` is empty.
    """
    texts = perplexities(runs)
    settings = {str(one["folder"]): _setting(described, one) for _, one in _clean_test(texts).iterrows()}
    rows = [*_accuracies(runs, described), *_rewards(runs, described), *_language(texts, described)]
    rows += _sequence_costs(runs, described, settings)
    return pd.DataFrame(rows, columns=COLUMNS)


def _number(one: pd.Series, kind: str, row: str, metric: str, value: float, **more: Any) -> dict[str, Any]:
    of_run = {"label": one["label"], "run_seed": one["run_seed"], "folder": one["folder"]}
    number = {"kind": kind, "row": row, "metric": metric, "value": value, **of_run}
    return {**number, "setting": "", "measured": "", "share": 0.0, "pair": "", **more}


def _clean(table: pd.DataFrame) -> Numbers:
    if table.empty:
        return
    clean = of_one_checkpoint(clean_rows(table)).sort_values("images", kind="stable")
    clean = clean.drop_duplicates(["label", "run_seed"], keep="last")
    for (_, one), how in zip(clean.iterrows(), apart(clean, [], settings(clean, ["images"])), strict=True):
        for metric in ("top1", "top5"):
            yield _number(one, "clean", "IN-1K", metric, one[metric], measured=f"clean test set {how}".rstrip())


def _clean_where_attacked(table: pd.DataFrame, known: set[str]) -> Numbers:
    """Yield the clean accuracy of runs that were attacked and never evaluated, on the most images."""
    if table.empty or "clean_top1" not in table:
        return
    of_others = of_one_checkpoint(table[~table["folder"].isin(known)]).sort_values("images", kind="stable")
    of_others = of_others.drop_duplicates(["label", "run_seed"], keep="last")
    for (_, one), words in zip(of_others.iterrows(), apart(of_others, [], ["checkpoint"]), strict=True):
        how = f"{one['images']} clean test images {words}".rstrip()
        yield _number(one, "clean", "IN-1K", "top1", one["clean_top1"], measured=how)


def _folders(table: pd.DataFrame) -> Numbers:
    if "aupr" not in table:
        return
    scored = of_one_checkpoint(table.dropna(subset="aupr"))
    for (_, one), how in zip(scored.iterrows(), apart(scored, ["split"], settings(scored, ["split"])), strict=True):
        name = f"{one['split']} {how}".rstrip()
        split = str(one["split"])
        row = next((row for row, pattern in SHIFTED.items() if re.fullmatch(pattern, split, re.IGNORECASE)), "")
        if row:
            yield _number(one, "shifted", row, "top1", one["top1"], measured=name)
        else:
            yield _number(one, "ood", "IN-O", "aupr", one["aupr"], measured=f"OOD {name}")


def _corrupted(evaluated: pd.DataFrame, compared: pd.DataFrame) -> Numbers:
    found = list(errors_of_runs(evaluated))
    made = pd.DataFrame([together.iloc[-1] for together, _ in found])
    words = apart(made, [], settings(made, ["images", "severity", "corruption", "textures"])) if found else []
    for (together, errors), how in zip(found, words, strict=True):
        one = together.iloc[-1]
        yield _number(one, "corrupted", "IN-C", "top1", 100 - errors.mean(), measured=f"corrupted {how}".rstrip())
        for name, error in errors.items():
            yield _number(one, "by_type", str(name), "top1", 100 - error)
    if compared.empty:
        return
    known = compared.dropna(subset="corruption_error")
    for _, part in known.groupby("folder", sort=False):
        one = part.iloc[-1]
        against = f"corrupted, against {one['reference']}"
        yield _number(one, "corrupted", "IN-C", "mce", part["corruption_error"].mean(), measured=against)
    for _, one in known.iterrows():
        yield _number(one, "by_type", one["corruption"], "mce", one["corruption_error"])


def _attacked(table: pd.DataFrame) -> Numbers:
    """Yield accuracies at the greatest ε of each attack, as the RPC paper reports it."""
    if table.empty:
        return
    same = ["folder", *settings(table, ["epsilon", "images", "name"])]
    greatest = table.sort_values("epsilon", kind="stable").drop_duplicates(same, keep="last")
    for _, one in greatest.sort_index().iterrows():
        for metric in ("top1", "top5"):
            yield _number(one, "attacked", str(one["attack"]), metric, one[metric], measured=str(one["name"]))


def _segmented(runs: Sequence[Run]) -> Numbers:
    """Yield clean measures of segmenters, and means over all types and severities where all were measured."""
    for _, one in segmentation_summary(segmentation_frame(frame(runs, "segmentation.csv"))).iterrows():
        for metric in SEGMENTATION:
            yield _number(one, "segmented", "ADE20K", metric, one[metric], measured="clean test set")
            if one["types"] == ALL_TYPES:
                value = one[f"corrupted_{metric}"]
                yield _number(one, "segmented", "corrupted ADE20K", metric, value, measured="corrupted")


def _image_costs(runs: Sequence[Run]) -> Numbers:
    for of in training_costs(runs):
        device = str(of.manifest.get("device"))
        for metric in ("seconds_per_1k_steps", "memory_gb"):
            how = {"measured": f"training on {device}", "pair": device}
            yield _number(of.rows.iloc[-1], "costs", "training", metric, of.costs[metric], **how)


def _clean_test(texts: pd.DataFrame) -> pd.DataFrame:
    return texts[(texts["corpus"] == "") & (texts["split"] == "test") & (texts["swap_share"] == 0)]


def _setting(described: ByFolder, one: pd.Series, corpus: str = "") -> str:
    run = described[str(one["folder"])]
    window = f"context {one['window']:,}"
    windows = [] if run.facts.get("context") == window else [f"windows of {one['window']:,}"]
    split = ["validation"] if one["split"] == "validation" else []
    part = [] if str(one["asked"]) == "all" else [f"first {int(one['asked']):,} tokens"]
    whence = [f"trained on {run.facts['name']}"] if corpus else []
    return run.setting(*windows, f"stride {one['stride']:,}", *split, *part, *whence, on=corpus)


def _accuracies(runs: Sequence[Run], described: ByFolder) -> Numbers:
    evaluated = frame(runs, "eval.csv")
    if evaluated.empty:
        return
    evaluated = of_one_checkpoint(evaluated)
    if "images" in evaluated:
        evaluated = evaluated.sort_values("images", kind="stable")
    known = [("top1", clean_rows(evaluated)), ("validation_top1", evaluated[evaluated["split"] == "validation"])]
    for metric, rows in known:
        for _, one in rows.drop_duplicates(["label", "run_seed"], keep="last").iterrows():
            run = described[one["folder"]]
            for kind, row in run.tasks.items():
                yield _number(one, kind, row, metric, one["top1"], setting=run.setting())


def _rewards(runs: Sequence[Run], described: ByFolder) -> Numbers:
    """Yield means over the episodes that were asked for the greatest return, as D4RL normalises it."""
    acted = asked_for(runs)
    if acted.empty:
        return
    for folder, episodes in greatest_asked(acted).groupby("folder", sort=False):
        run, one = described[str(folder)], episodes.iloc[-1]
        if row := run.tasks.get("control"):
            score = episodes["normalised_score"].mean()
            yield _number(one, "control", row, "reward", score, setting=run.setting())


def _language(texts: pd.DataFrame, described: ByFolder) -> Numbers:
    for _, one in texts.iterrows():
        tokens, clean = str(one["tokens"]), one["swap_share"] == 0
        if one["corpus"] == "" and one["split"] in ("validation", "test"):
            metric = "perplexity" if clean else "swapped_perplexity"
            how = {"setting": _setting(described, one), "share": float(one["swap_share"])}
            pair = f"{one['swap_seed']} {tokens}"
            yield _number(one, "language", one["split"], metric, one["perplexity"], pair=pair, **how)
        if one["split"] == "test" and clean:
            run = described[one["folder"]]
            corpus = one["corpus"] or run.data
            row = CORPORA.get(corpus.lower(), corpus if one["corpus"] else run.facts["name"])
            setting = _setting(described, one, one["corpus"])
            yield _number(one, "zero_shot", row, "loss", one["loss"], setting=setting, pair=tokens)


def _sequence_costs(runs: Sequence[Run], described: ByFolder, settings: Mapping[str, str]) -> Numbers:
    for of in training_costs(runs):
        run, one = described[of.folder], of.rows.iloc[-1]
        places = [(kind, row, run.setting()) for kind, row in run.tasks.items()]
        if of.folder in settings:
            places.append(("language", "test", settings[of.folder]))
        for kind, row, setting in places:
            for metric, value in of.costs.items():
                if value == value:
                    yield _number(one, kind, row, metric, value, setting=setting, pair=run.facts["device"])
            best = of.rows[of.rows["epoch"] == of.manifest.get("best_epoch")]
            if len(best) and "top1" in best:
                yield _number(one, kind, row, "train_top1", best["top1"].iloc[-1], setting=setting)
