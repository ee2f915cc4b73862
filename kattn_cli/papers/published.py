"""The numbers that the papers print, one file a paper and one row a number; ``README.md`` beside says what is odd."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import pandas as pd

PaperName = Literal["primal", "tost", "rpc"]
NAMES: dict[PaperName, str] = {"primal": "Primal-Attention", "tost": "ToST", "rpc": "RPC-Attention"}
Published = Mapping[tuple[str, str, str, str], float]
"""By table, row, metric and model."""


def file_of(paper: PaperName) -> Path:
    """The CSV with a paper's numbers as they are printed."""
    return Path(__file__).parent / f"{paper}.csv"


@cache
def published(paper: PaperName) -> pd.DataFrame:
    """A paper's numbers with the columns ``table, row, model, metric, value, spread``. Shared: not to be changed.

    ``table`` is ``table1``, or ``v1_table5`` of what the first version of a paper alone has; ``row`` the paper's row,
    data set or setting; ``model`` our name of it where there is one, else the paper's. Accuracies are in %, units of
    other metrics in their names. ``spread`` is the ± that is printed, nan where there is none.
    """
    return pd.read_csv(file_of(paper), dtype={"value": float, "spread": float})


@cache
def numbers(paper: PaperName) -> Published:
    """``(table, row, metric, model)`` → the number that the paper prints."""
    return published(paper).set_index(["table", "row", "metric", "model"])["value"].to_dict()
