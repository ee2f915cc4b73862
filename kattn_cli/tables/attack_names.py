"""What tables and figures call a measurement under attack: ``pgd 4/255``, ``cw ℓ2``, ``square 1/255 normalised``."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import pandas as pd

from kattn_cli.attacks import ATTACKS

SIGNS = {"linf": "ℓ∞", "l2": "ℓ2", "l1": "ℓ1"}
DEFAULTS: dict[str, Any] = {
    "norm": "linf",
    "epsilon_units": "pixels in [0, 1]",
    "steps": 0,
    "restarts": 1,
    "targeted": False,
}
"""What the columns of an attack hold where a file of an earlier version lacks them."""
IDENTITY = ["attack", "norm", "epsilon", "epsilon_units", "steps", "restarts", "targeted"]
"""Columns that make two rows of one run two measurements."""


def epsilon_text(epsilon: float, norm: str = "linf") -> str:
    """Return ``4/255`` for ℓ∞, ``ℓ2 0.5`` and ``ℓ1 10`` for the others, ``ℓ2`` alone where there is no budget."""
    if norm == "linf":
        return f"{255 * epsilon:.3g}/255"
    return SIGNS[norm] if math.isinf(epsilon) else f"{SIGNS[norm]} {epsilon:.3g}"


def attack_name(row: pd.Series, *, steps: bool = False) -> str:
    """Return one row's name; with ``steps`` where they differ between rows that are otherwise alike."""
    parts = [str(row["attack"]), epsilon_text(row["epsilon"], row.get("norm", "linf"))]
    parts += ["normalised"] if row.get("epsilon_units") == "normalised" else []
    parts += ["targeted"] if row.get("targeted") is True or str(row.get("targeted")) == "True" else []
    parts += [f"{row['steps']} steps"] if steps else []
    parts += [f"{row['restarts']} restarts"] if int(row.get("restarts", 1)) > 1 else []
    return " ".join(parts)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Return ``table`` with a column ``name``, in the order of :data:`~kattn_cli.attacks.ATTACKS` and rising ε."""
    alike = [column for column in IDENTITY if column != "steps"]
    several = table.groupby(alike, dropna=False)["steps"].transform("nunique") > 1
    names = [attack_name(row, steps=bool(more)) for (_, row), more in zip(table.iterrows(), several, strict=True)]
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
