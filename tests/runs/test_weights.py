"""Rows of weights that a run no longer has."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest

from kattn_cli.runs.csv_rows import read_rows, replace_rows, write_rows
from kattn_cli.runs.run import Run
from kattn_cli.runs.weights import fingerprint, has_still, kept_name, meant_weights, weights_path
from kattn_cli.tables.frames import frame


def write(run: Path, which: str, content: bytes) -> str:
    path = weights_path(run, which)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return fingerprint(path)


def test_the_file_says_which_weights_a_name_stands_for(tmp_path: Path) -> None:
    """Of a run that was trained further, whose rows of before are the last in the table all the same."""
    old = write(tmp_path, "best", b"before")
    new = write(tmp_path, "best", b"after it was trained further")
    rows = [{"checkpoint": "best", "weights": one} for one in (new, old, "")]
    assert has_still(tmp_path, rows) == [True, False, True], "a row that names none passes"


def test_names_stand_for_themselves(tmp_path: Path) -> None:
    best, last, third = (write(tmp_path, which, which.encode()) for which in ("best", "last", kept_name(3)))
    rows = [
        {"checkpoint": "best", "weights": best, "epoch": 9},
        {"checkpoint": "last", "weights": best, "epoch": 9},
        {"checkpoint": "last", "weights": last, "epoch": 9},
        {"checkpoint": "kept", "weights": third, "epoch": 3},
        {"checkpoint": "kept", "weights": last, "epoch": 3},
    ]
    assert has_still(tmp_path, rows) == [True, False, True, True, False]


def test_without_the_file_the_last_row_of_a_name_counts(tmp_path: Path) -> None:
    rows = [{"checkpoint": which, "weights": one} for which, one in (("best", "a"), ("last", "b"), ("best", "c"))]
    assert has_still(tmp_path, rows) == [False, True, True]


HEADER = b'{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
FILE = len(HEADER).to_bytes(8, "little") + HEADER + b"ab"
WHOLE = hashlib.sha256(FILE).hexdigest()[:12]
"""What an earlier version wrote of that file."""


def test_rows_of_an_earlier_version_are_known(tmp_path: Path) -> None:
    """Which named the sum of the whole file."""
    now = write(tmp_path, "best", FILE)
    assert now != WHOLE
    rows = [{"checkpoint": "best", "weights": one, "top1": k} for k, one in enumerate((WHOLE, now, "of others", ""))]
    assert has_still(tmp_path, rows) == [True, True, False, True]
    write_rows(tmp_path / "eval.csv", rows)
    assert [row["weights"] for row in read_rows(tmp_path / "eval.csv")] == [now, now, "of others", ""]


def test_a_measurement_of_an_earlier_version_is_the_same_one(tmp_path: Path) -> None:
    now = write(tmp_path, "best", FILE)
    write_rows(tmp_path / "eval.csv", [{"checkpoint": "best", "weights": WHOLE, "top1": 1}])
    replace_rows(tmp_path / "eval.csv", [{"checkpoint": "best", "weights": now, "top1": 2}])
    assert read_rows(tmp_path / "eval.csv") == [{"checkpoint": "best", "weights": now, "top1": "2"}]


def test_tables_of_runs_have_todays_fingerprints(tmp_path: Path) -> None:
    now = write(tmp_path, "best", FILE)
    manifest = {"name": "a", "seed": 0, "status": "finished", "start": "2026"}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    rows = [{"split": "test", "images": 9, "checkpoint": "best", "weights": one, "top1": 1} for one in (WHOLE, "")]
    write_rows(tmp_path / "eval.csv", rows)
    found = frame([Run(tmp_path)], "eval.csv")["weights"]
    assert found[0] == now
    assert pd.isna(found[1])


def test_measured_again_a_row_keeps_its_place(tmp_path: Path) -> None:
    """As the clean images of an evaluation that goes on do, above those that are corrupted."""
    path = tmp_path / "eval.csv"
    write_rows(path, [{"corruption": one, "top1": 1, "weights": ""} for one in ("", "fog", "snow")])
    replace_rows(path, [{"corruption": one, "top1": 2, "weights": "a"} for one in ("frost", "snow", "")])
    found = [(row["corruption"], row["top1"], row["weights"]) for row in read_rows(path)]
    assert found == [("", "2", "a"), ("fog", "1", ""), ("snow", "2", "a"), ("frost", "2", "a")]


def test_two_rows_of_one_measurement_become_one(tmp_path: Path) -> None:
    path = tmp_path / "eval.csv"
    write_rows(path, [{"split": "test", "top1": one, "weights": "a"} for one in (1, 2)])
    replace_rows(path, [{"split": "test", "top1": 3, "weights": "a"}])
    assert [row["top1"] for row in read_rows(path)] == ["3"]


@pytest.mark.parametrize("there", ["best", "best.previous"])
def test_only_a_run_without_an_epoch_has_no_best(tmp_path: Path, there: str) -> None:
    write(tmp_path, "last", FILE)
    assert meant_weights(tmp_path, "best") == meant_weights(tmp_path, "last") == "last"
    assert meant_weights(tmp_path, kept_name(3)) == kept_name(3)
    write(tmp_path, there, FILE)
    assert meant_weights(tmp_path, "best") == "best"
    weights_path(tmp_path, there).unlink()
    assert meant_weights(tmp_path, "best") == "last"
    (tmp_path / "metrics.csv").touch()
    assert meant_weights(tmp_path, "best") == "best", "an epoch ended, so it is gone"


def test_a_folder_in_place_of_the_weights_makes_no_table_unreadable(tmp_path: Path) -> None:
    weights_path(tmp_path, "best").mkdir(parents=True)
    rows = [{"checkpoint": "best", "weights": one} for one in ("a", "b")]
    assert has_still(tmp_path, rows) == [False, True]
