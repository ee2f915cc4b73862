"""Which rows of ``perplexity.csv`` count: one for each label, seed and measurement."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import frame

PERPLEXITY_CSV = "perplexity.csv"


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
