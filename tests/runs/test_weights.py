"""Rows of weights that a run no longer has."""

from __future__ import annotations

from pathlib import Path

from kattn_cli.runs.weights import fingerprint, has_still, kept_name, previous_path, weights_path


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
    weights_path(tmp_path, "best").rename(previous_path(weights_path(tmp_path, "best")))
    assert has_still(tmp_path, rows) == [True, False, True], "the one before is used in its place"


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
