"""The episodes that trained policies acted in."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import frame

ROLLOUTS_CSV = "rollouts.csv"


def asked_for(runs: Sequence[Run]) -> pd.DataFrame:
    """One row an episode, of the weights that each run was measured with last; ``return`` by ``target_return``."""
    acted = frame(runs, ROLLOUTS_CSV)
    if acted.empty:
        return acted
    return acted[acted["weights"] == acted.groupby("folder")["weights"].transform("last")]


def greatest_asked(acted: pd.DataFrame) -> pd.DataFrame:
    """Of each run the episodes that were asked for the most."""
    return acted[acted["target_return"] == acted.groupby("folder")["target_return"].transform("max")]
