"""A small version of ``make simulations``: the rates that kattn states are those that it has."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from simulations import EQUAL, LEVEL, NOISE, Case, cases, table

CASES = {(one.rate, one.model, one.noise, one.seeds, one.images): one for one in cases()}
COMMITTED = Path(__file__).parents[1] / "results" / "reference" / "statistics" / "simulations.csv"
SMALL = [
    ("type I", "two-way", "normal", 3, 0),
    ("type I", "two-way", "t of 3 df", 5, 0),
    ("type I", "ranks", "t of 3 df", 10, 0),
    ("type I", "crossed", "seeds 2 points", 3, 200),
    ("equivalence", "two-way", "lognormal", 5, 0),
    ("family", "decide", "normal", 5, 0),
    ("power", "Student", "normal", 5, 0),
    ("power", "Student, equivalence", "normal", 10, 0),
    ("power", "crossed", "seeds 2 points", 5, 1000),
]


@pytest.mark.parametrize("key", SMALL, ids=lambda key: " ".join(map(str, key)))
def test_a_stated_rate_holds(key: tuple[str, str, str, int, int]) -> None:
    row = CASES[key].row(400)
    assert row.holds, row


def test_a_rate_that_does_not_hold_is_found() -> None:
    """Variance pooled over quiet arms and given to a noisy one: Student's distribution promises 5 %."""

    def pooled(random: np.random.Generator) -> bool:
        values = table(NOISE["normal"], 5, [0.0] * 5, [*EQUAL[:-1], 3.0], random)
        numbers = np.array([list(row.values()) for row in values.values()])
        left = numbers - numbers.mean(0) - numbers.mean(1, keepdims=True) + numbers.mean()
        error = np.sqrt(2 * (left**2).sum() / 16 / 5)
        return bool(abs((numbers[4] - numbers[0]).mean()) > 2.12 * error)

    assert not Case("type I", "pooled", "3 × in one arm", 5, 0, LEVEL, pooled).row(400).holds


def test_what_is_committed_is_of_these_cases_and_says_where_a_rate_does_not_hold() -> None:
    with COMMITTED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [(one["rate"], one["model"], one["noise"], int(one["seeds"]), int(one["images"])) for one in rows]
    assert found == list(CASES)
    lost = {(one["model"], one["noise"]) for one in rows if one["holds"] == "no"}
    assert lost == {(model, "exponential, 3 × in one arm") for model in ("Student", "two-way")}
