"""Claims about the cost of whole models, of the papers' own sizes; each judged by one measurement."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from kattn_cli.figures.model_costs import ratios
from kattn_cli.papers.cost import share
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.finding import Finding

SAME = ["n", "dtype", "batch"]


def share_of(
    base: str,
    ours: tuple[str, ...],
    what: str,
    quantity: Literal["time", "memory"],
    below: float,
    evidence: Evidence,
) -> list[Finding]:
    """Time a sample, or weights, optimizer's state and peak memory, over those of the model ``base``.

    Args:
        base, ours: models as ``kattn model-costs`` calls them.
        what: ``training step`` or ``forward``.
        below: where the share must be for the claim to hold.
    """
    if evidence.models.empty:
        return []
    known = evidence.models
    known = known[(known["status"] == "ok") & (known["version"] == "fast") & known["model"].isin([base, *ours])]
    if base not in set(known["model"]):
        return []
    known = known.drop_duplicates(["model", "pass", *SAME], keep="last")
    table = ratios(known.sort_values("model", key=lambda names: names != base, kind="stable"))
    table = table[table["pass"] == what].set_index(["model", *SAME])
    found = []
    for (model, *same), row in table.iterrows():
        compared = (base, *same)
        if model in ours and compared in table.index:
            n, dtype, batch = same
            beside = f"of {base}; batch {batch}, {row['device']}, {dtype}"
            label = f"{model}, {n:,} tokens"
            found.append(_finding(label, row, table.loc[compared], quantity, below, beside))
    return found


def _finding(label: str, row: pd.Series, base: pd.Series, quantity: str, below: float, beside: str) -> Finding:
    costs, spreads = (row["memory_mib"], base["memory_mib"]), (0.0, 0.0)
    if quantity == "time":
        costs, spreads = (row["milliseconds"], base["milliseconds"]), (row["spread"], base["spread"])
    return share(label, costs, spreads, below, beside, float(row[f"published_{quantity}_ratio"]))
