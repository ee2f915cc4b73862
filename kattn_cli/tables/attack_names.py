"""What tables and figures call a measurement under attack: ``pgd 4/255``, ``cw ℓ2``, ``square 1/255 normalised``."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from kattn_cli.attacks import ATTACKS
from kattn_cli.tables.measurements import apart, settings

SIGNS = {"linf": "ℓ∞", "l2": "ℓ2", "l1": "ℓ1"}
ALWAYS = ("attack", "norm", "epsilon", "epsilon_units", "restarts", "targeted")
"""Columns that a name always tells; of all others it tells those in which rows differ that are alike in these."""
SHARE = "step_share"
"""The step as the command line takes it: a share of ε, or as it is of attacks that need no budget."""


def epsilon_text(epsilon: float, norm: str = "linf") -> str:
    """Return ``4/255`` for ℓ∞, ``ℓ2 0.5`` and ``ℓ1 10`` for the others, ``ℓ2`` alone where there is no budget."""
    if norm == "linf":
        return f"{255 * epsilon:.3g}/255"
    return SIGNS[norm] if math.isinf(epsilon) else f"{SIGNS[norm]} {epsilon:.3g}"


def with_step_share(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a column :data:`SHARE` in place of ``step_size``, which grows with ε."""
    if "step_size" not in table:
        return table
    shares = [
        size / epsilon if _has_budget(str(attack), epsilon) else size
        for attack, epsilon, size in zip(table["attack"], table["epsilon"], table["step_size"], strict=True)
    ]
    return table.drop(columns="step_size").assign(**{SHARE: [float(f"{share:.6g}") for share in shares]})


def _has_budget(attack: str, epsilon: float) -> bool:
    return math.isfinite(epsilon) and (attack not in ATTACKS or ATTACKS[attack].needs_budget)


def attack_name(row: Mapping[str, Any], apart: str = "") -> str:
    """Return one row's name, with what tells it ``apart`` from rows that would have the same."""
    parts = [str(row["attack"]), epsilon_text(row["epsilon"], row.get("norm", "linf"))]
    parts += ["normalised"] if row.get("epsilon_units") == "normalised" else []
    parts += ["targeted"] if row.get("targeted") is True or str(row.get("targeted")) == "True" else []
    parts += [f"{row['restarts']} restarts"] if int(row.get("restarts", 1)) > 1 else []
    return " ".join(filter(None, [*parts, apart]))


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Return ``table`` with a column ``name``, in the order of :data:`~kattn_cli.attacks.ATTACKS` and rising ε.

    No two measurements have one name: ``pgd 4/255 40 steps``, ``pgd 4/255 step 0.1``, ``pgd 4/255 last``.
    """
    differing = apart(table, ALWAYS, settings(table, (*ALWAYS, "step_size")))
    rows = table[[one for one in ALWAYS if one in table]].to_dict("records")
    names = [attack_name(row, words) for row, words in zip(rows, differing, strict=True)]
    order = ["epsilon_units", "attack", "norm", "targeted", "epsilon", "steps", "restarts"]
    ranked = table.assign(name=names).sort_values(order, key=_rank, kind="stable")
    return ranked.reset_index(drop=True)


def _rank(column: pd.Series) -> pd.Series:
    places: dict[str, dict[Hashable, int]] = {
        "attack": {name: place for place, name in enumerate(ATTACKS)},
        "norm": {name: place for place, name in enumerate(SIGNS)},
        "epsilon_units": {"pixels in [0, 1]": 0, "normalised": 1},
    }
    known = places.get(str(column.name))
    return column.map(known).fillna(len(known)) if known else column
