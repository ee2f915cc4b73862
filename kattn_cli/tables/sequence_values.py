"""What the tables of runs on sequences hold, one row a number and seed, whichever paper it is to be laid beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from kattn_cli.papers.sequence_runs import CORPORA, SequenceRun, sequence_run
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import clean_rows, frame
from kattn_cli.tables.rollouts import asked_for, greatest_asked
from kattn_cli.tables.training_costs import training_costs

PERPLEXITY_CSV = "perplexity.csv"
COLUMNS = ["kind", "row", "metric", "share", "setting", "label", "run_seed", "pair", "value", "folder"]
Described = Mapping[str, SequenceRun]
"""By the run's folder."""
Numbers = Iterator[dict[str, Any]]


def sequence_values(runs: Sequence[Run]) -> pd.DataFrame:
    """One row for each number, label and seed, with the columns :data:`COLUMNS`.

    ``kind``: ``series``, ``lra``, ``sentences``, ``language`` (perplexity of the run's own corpus; ``row`` is the
    split), ``zero_shot`` (loss on each corpus, its own too), ``control`` (normalised scores) or ``control_costs``.
    ``share``: of swapped words. ``setting``: what was run. Only what has the same ``pair`` can be compared: times and
    memory of one device, texts of as many tokens.
    """
    described = {str(run.folder): sequence_run(run) for run in runs}
    told = perplexities(runs)
    settings = {str(one["folder"]): _setting(described, one) for _, one in _clean_test(told).iterrows()}
    rows = [*_accuracies(runs, described), *_rewards(runs, described), *_language(told, described)]
    rows += _costs(runs, described, settings)
    return pd.DataFrame(rows, columns=COLUMNS)


def perplexities(runs: Sequence[Run]) -> pd.DataFrame:
    """The rows of ``perplexity.csv`` of the chosen weights, one for each label, seed and measurement.

    Of several, that of the whole text (``asked`` is ``all``), then of the smallest stride (in which a token sees most
    of what is before it), then the last. ``split`` is ``test`` of other corpora, too.
    """
    table = frame(runs, PERPLEXITY_CSV)
    if table.empty:
        return pd.DataFrame(columns=["corpus", "split", "swap_share", "folder"])
    chosen = pd.concat([_of_chosen_weights(rows) for _, rows in table.groupby("folder", sort=False)])
    corpora = [one if isinstance(one, str) else "" for one in chosen["corpus"]]
    splits = ["test" if corpus else split for corpus, split in zip(corpora, chosen["split"], strict=True)]
    told = chosen.assign(corpus=corpora, split=splits, swap_seed=chosen["swap_seed"].fillna(0))
    ordered = told.assign(part=told["asked"].astype(str) != "all").sort_values(
        ["part", "stride"], ascending=False, kind="stable"
    )
    same = ["folder", "corpus", "split", "swap_share", "swap_seed"]
    return ordered.drop_duplicates(same, keep="last").sort_index()


def _of_chosen_weights(rows: pd.DataFrame) -> pd.DataFrame:
    """Of one run: the best weights, or else those measured last, as they were when last measured."""
    best = rows[rows["checkpoint"] == "best"]
    rows = rows if best.empty else best
    return rows[rows["weights"] == rows["weights"].iloc[-1]]


def own_perplexities(runs: Sequence[Run]) -> pd.DataFrame:
    """Those of the runs' own corpora, of what was not trained on."""
    told = perplexities(runs)
    return told[(told["corpus"] == "") & told["split"].isin(["validation", "test"])]


def _clean_test(told: pd.DataFrame) -> pd.DataFrame:
    return told[(told["corpus"] == "") & (told["split"] == "test") & (told["swap_share"] == 0)]


def _setting(described: Described, one: pd.Series, corpus: str = "") -> str:
    run = described[str(one["folder"])]
    window = f"context {one['window']:,}"
    windows = [] if run.facts.get("context") == window else [f"windows of {one['window']:,}"]
    split = ["validation"] if one["split"] == "validation" else []
    part = [] if str(one["asked"]) == "all" else [f"first {int(one['asked']):,} tokens"]
    whence = [f"trained on {run.facts['name']}"] if corpus else []
    return run.setting(*windows, f"stride {one['stride']:,}", *split, *part, *whence, on=corpus)


def _number(one: pd.Series, kind: str, row: str, metric: str, setting: str, **more: Any) -> dict[str, Any]:
    of_run = {"label": one["label"], "run_seed": one["run_seed"], "folder": one["folder"]}
    return {"kind": kind, "row": row, "metric": metric, "setting": setting, "share": 0.0, "pair": "", **of_run, **more}


def _accuracies(runs: Sequence[Run], described: Described) -> Numbers:
    evaluated = frame(runs, "eval.csv")
    if evaluated.empty:
        return
    if "images" in evaluated:
        evaluated = evaluated.sort_values("images", kind="stable")
    known = [("top1", clean_rows(evaluated)), ("validation_top1", evaluated[evaluated["split"] == "validation"])]
    for metric, rows in known:
        for _, one in rows.drop_duplicates(["label", "run_seed"], keep="last").iterrows():
            run = described[one["folder"]]
            for kind, row in run.tasks.items():
                yield _number(one, kind, row, metric, run.setting(), value=one["top1"])


def _rewards(runs: Sequence[Run], described: Described) -> Numbers:
    """The mean over episodes that were asked for the greatest return, as D4RL normalises it."""
    acted = asked_for(runs)
    if acted.empty:
        return
    for folder, episodes in greatest_asked(acted).groupby("folder", sort=False):
        run, one = described[str(folder)], episodes.iloc[-1]
        if row := run.tasks.get("control"):
            yield _number(one, "control", row, "reward", run.setting(), value=episodes["normalised_score"].mean())


def _language(told: pd.DataFrame, described: Described) -> Numbers:
    for _, one in told.iterrows():
        tokens, clean = str(one["tokens"]), one["swap_share"] == 0
        if one["corpus"] == "" and one["split"] in ("validation", "test"):
            metric = "perplexity" if clean else "swapped_perplexity"
            measured = {"share": float(one["swap_share"]), "pair": f"{one['swap_seed']} {tokens}"}
            setting = _setting(described, one)
            yield _number(one, "language", one["split"], metric, setting, value=one["perplexity"], **measured)
        if one["split"] == "test" and clean:
            run = described[one["folder"]]
            corpus = one["corpus"] or run.data
            row = CORPORA.get(corpus.lower(), corpus if one["corpus"] else run.facts["name"])
            setting = _setting(described, one, one["corpus"])
            yield _number(one, "zero_shot", row, "loss", setting, value=one["loss"], pair=tokens)


def _costs(runs: Sequence[Run], described: Described, settings: Mapping[str, str]) -> Numbers:
    for of in training_costs(runs):
        run, one = described[of.folder], of.rows.iloc[-1]
        places = [(kind, row, run.setting()) for kind, row in run.tasks.items()]
        if of.folder in settings:
            places.append(("language", "test", settings[of.folder]))
        for kind, row, setting in places:
            for metric, value in of.costs.items():
                if value == value:
                    yield _number(one, kind, row, metric, setting, value=value, pair=run.facts["device"])
            best = of.rows[of.rows["epoch"] == of.manifest.get("best_epoch")]
            if len(best) and "top1" in best:
                yield _number(one, kind, row, "train_top1", setting, value=best["top1"].iloc[-1])
