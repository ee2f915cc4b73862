"""The figure of errors under corruption: what is drawn of which rows."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from kattn_cli.figures.corruptions import MEAN, corruption_frame, draw_corruptions


def run_rows(label: str, seed: int, errors: dict[str, list[float]], clean: float = 5.0) -> list[dict[str, object]]:
    """As ``frame(runs, "eval.csv")`` has them."""
    run = {"label": label, "mechanism": label, "run_seed": seed, "split": "test", "checkpoint": "best", "weights": "a"}
    shared = {**run, "images": 100, "parameters": "cifar-c", "seed": 0}

    def row(corruption: object, severity: int, error: float) -> dict[str, object]:
        top1 = {"top1": 100 - error, "top1_low": 99 - error, "top1_high": 102 - error}
        return {**shared, "corruption": corruption, "severity": severity, **top1}

    first = {**row(math.nan, 0, clean), "parameters": math.nan, "seed": math.nan}
    return [first, *(row(name, k, error) for name, values in errors.items() for k, error in enumerate(values, 1))]


ERRORS = {"fog": [10.0, 20, 30, 40, 50], "snow": [20.0, 20, 20, 20, 60]}


def test_each_type_begins_at_the_clean_error_and_their_mean_is_one_more() -> None:
    table = corruption_frame(pd.DataFrame(run_rows("softmax", 0, ERRORS)))
    lines = {name: part.sort_values("severity")["error"].tolist() for name, part in table.groupby("corruption")}
    assert lines == {"fog": [5, 10, 20, 30, 40, 50], "snow": [5, 20, 20, 20, 20, 60], MEAN: [5, 15, 20, 25, 30, 55]}
    first = table[(table["corruption"] == "fog") & (table["severity"] == 1)].iloc[0]
    assert (first["error_low"], first["error_high"]) == pytest.approx((8, 11))


def test_a_type_that_is_not_complete_is_drawn_but_not_averaged() -> None:
    table = corruption_frame(pd.DataFrame(run_rows("softmax", 0, {**ERRORS, "frost": [90.0]})))
    means = table[table["corruption"] == MEAN].sort_values("severity")["error"].tolist()
    assert means == [5, 15, 20, 25, 30, 55]
    assert len(table[table["corruption"] == "frost"]) == 2
    assert MEAN not in set(corruption_frame(pd.DataFrame(run_rows("softmax", 0, {"fog": ERRORS["fog"]})))["corruption"])


def test_files_without_corruptions_have_nothing_to_draw() -> None:
    old = pd.DataFrame([{"label": "a", "run_seed": 0, "split": "test", "severity": 0, "top1": 90.0}])
    assert corruption_frame(old).empty
    assert corruption_frame(pd.DataFrame(run_rows("softmax", 0, {}))).empty


@pytest.mark.parametrize("types", [1, 2, 5])
def test_several_runs_in_one_figure(types: int, tmp_path: Path) -> None:
    names = ["fog", "snow", "frost", "contrast", "pixelate"][:types]
    errors = {name: ERRORS["fog"] for name in names}
    rows = [row for label in ("softmax", "rpc") for seed in (0, 1) for row in run_rows(label, seed, errors)]
    path = draw_corruptions(corruption_frame(pd.DataFrame(rows)), tmp_path)
    assert path == tmp_path / "corruption_errors.png"
    assert path.with_suffix(".pdf").stat().st_size > 5000
