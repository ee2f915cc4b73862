"""What measurements are called, and their order."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from kattn_cli.tables.attack_names import epsilon_text, named

DEFAULTS = {"norm": "linf", "epsilon_units": "pixels in [0, 1]", "steps": 0, "restarts": 1, "targeted": False}


@pytest.mark.parametrize(
    ("epsilon", "norm", "text"),
    [(4 / 255, "linf", "4/255"), (0.5, "l2", "ℓ2 0.5"), (math.inf, "l2", "ℓ2"), (10.0, "l1", "ℓ1 10")],
)
def test_budgets(epsilon: float, norm: str, text: str) -> None:
    assert epsilon_text(epsilon, norm) == text


def table(*rows: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame([{**DEFAULTS, **row} for row in rows])


def test_names_in_order() -> None:
    found = named(
        table(
            {"attack": "square", "epsilon": 1 / 255},
            {"attack": "cw", "epsilon": math.inf, "norm": "l2"},
            {"attack": "pgd", "epsilon": 4 / 255, "restarts": 5},
            {"attack": "pgd", "epsilon": 4 / 255, "epsilon_units": "normalised"},
            {"attack": "pgd", "epsilon": 1 / 255, "targeted": True},
            {"attack": "pgd", "epsilon": 0.5, "norm": "l2"},
            {"attack": "pgd", "epsilon": 1 / 255},
        )
    )
    assert found["name"].tolist() == [
        "pgd 1/255",
        "pgd 4/255 5 restarts",
        "pgd 1/255 targeted",
        "pgd ℓ2 0.5",
        "cw ℓ2",
        "square 1/255",
        "pgd 4/255 normalised",
    ]


def test_steps_are_told_where_they_differ() -> None:
    found = named(
        table(
            {"attack": "pgd", "epsilon": 1 / 255, "steps": 20},
            {"attack": "pgd", "epsilon": 1 / 255, "steps": 50},
            {"attack": "pgd", "epsilon": 2 / 255, "steps": 20},
        )
    )
    assert found["name"].tolist() == ["pgd 1/255 20 steps", "pgd 1/255 50 steps", "pgd 2/255"]
