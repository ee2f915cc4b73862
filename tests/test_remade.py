"""What ``make reference`` or ``reference-small`` made, beside what is committed under results/reference.

On one kind of processor with the same versions the numbers are the same to the last digit. Elsewhere sums are rounded
otherwise, trainings drift apart, and these tolerances say how far they may: for one run on the test images, clean,
``CLEAN`` points of top-1 (355 digits: a standard error of 0.8 at 97 %, of a difference 1.1), under attack ``ATTACKED``;
for the mean over all runs, where drift averages out, ``MEAN``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from kattn_cli.runs.csv_rows import whole_rows
from kattn_cli.runs.find import all_runs
from kattn_cli.runs.run import Run

pytestmark = pytest.mark.reference

REFERENCE = Path(__file__).parents[1] / "results" / "reference"
REMADE = Path(os.environ.get("KATTN_REMADE", "results/remade"))
CLEAN, ATTACKED, MEAN = 4.0, 15.0, 0.5
ATTACK = ["attack", "norm", "epsilon", "epsilon_units"]
LEAST = 30
"""Runs; with fewer nothing has been remade."""


@pytest.fixture(scope="module")
def pairs() -> list[tuple[Run, Run]]:
    """Each remade run with the committed one of its label and seed."""
    committed = {(run.label, run.seed): run for run in all_runs(REFERENCE)}
    return [(run, committed[run.label, run.seed]) for run in all_runs(REMADE) if (run.label, run.seed) in committed]


def table(run: Run, name: str) -> pd.DataFrame:
    text = whole_rows(run.folder / name)
    return pd.read_csv(StringIO(text)) if text.strip() else pd.DataFrame()


def attacked(pairs: list[tuple[Run, Run]]) -> Iterator[tuple[str, pd.Series]]:
    for remade, committed in pairs:
        both = [table(run, "attacks.csv") for run in (remade, committed)]
        if all(len(one) for one in both):
            rows = both[0].merge(both[1], on=[*ATTACK, "images"], suffixes=("", "_committed"))
            yield from ((f"{remade.label}/{remade.seed}", row) for _, row in rows.iterrows())


def last_validation(run: Run) -> pd.Series:
    rows = table(run, "metrics.csv")
    return rows[rows["split"] == "validation"].iloc[-1]


def tell(what: str, differences: list[float]) -> None:
    """Print how many are equal, and hold the mean to its tolerance."""
    mean = sum(differences) / len(differences)
    print(
        f"\n{what}: {differences.count(0.0)} of {len(differences)} equal to the last digit, mean difference {mean:+.2f}"
    )
    assert abs(mean) <= MEAN


def test_enough_was_remade(pairs: list[tuple[Run, Run]]) -> None:
    assert len(pairs) >= LEAST, f"{len(pairs)} runs under {REMADE} have a counterpart; make reference-small makes them"


def test_models_are_the_same(pairs: list[tuple[Run, Run]]) -> None:
    for remade, committed in pairs:
        assert remade.manifest["parameters"] == committed.manifest["parameters"], remade.folder


def test_last_validation_is_near(pairs: list[tuple[Run, Run]]) -> None:
    differences = []
    for remade, committed in pairs:
        ours, theirs = (last_validation(run) for run in (remade, committed))
        assert ours["step"] == theirs["step"], remade.folder
        differences.append(ours["top1"] - theirs["top1"])
        assert abs(differences[-1]) <= CLEAN, f"{remade.folder}: {ours['top1']:.1f}, committed {theirs['top1']:.1f}"
    tell("validation", differences)


def test_attacks_are_near(pairs: list[tuple[Run, Run]]) -> None:
    differences = []
    for name, row in attacked(pairs):
        for column, most in (("clean_top1", CLEAN), ("top1", ATTACKED)):
            ours, theirs = row[column], row[f"{column}_committed"]
            what = f"{name} {row['attack']} {row['epsilon']} {column}"
            assert abs(ours - theirs) <= most, f"{what}: {ours:.1f}, committed {theirs:.1f}"
        differences.append(row["top1"] - row["top1_committed"])
    assert len(differences) >= LEAST
    tell("attacks", differences)
