"""Which images each seed of several arms had right, laid side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kattn_cli.errors import RunError
from kattn_cli.runs.bits import packed
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.bits import right_of
from kattn_cli.tables.frames import frame

DATA = {"name": "digits", "image_size": None, "validation": None}


def run_of(results: Path, label: str, seed: int, rows: list[dict[str, Any]], **data: Any) -> Run:
    folder = results / label / str(seed)
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"name": label, "seed": seed, "status": "finished"}))
    section = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in {**DATA, **data}.items())
    (folder / "recipe.yaml").write_text(f"name: {label}\nseed: {seed}\ndata:\n{section}")
    write_rows(folder / "eval.csv", rows)
    return Run(folder)


def row(right: list[int], **columns: Any) -> dict[str, Any]:
    bits = np.array(right, bool)
    where = {"split": "test", "severity": 0, "images": len(bits), "top1": 100 * bits.mean(), "path": ""}
    return {**where, **columns, "correct": packed(bits)}


def rows_of(*runs: Run) -> Any:
    return frame(runs, "eval.csv", correct=True)


def test_arm_and_seed_and_image(tmp_path: Path) -> None:
    rpc = [run_of(tmp_path, "rpc", seed, [row([seed, 1, 0])]) for seed in (0, 1)]
    softmax = run_of(tmp_path, "softmax", 1, [row([0, 0, 1])], validation=0.2, root="/elsewhere", image_size=16)
    found = right_of({"rpc": rows_of(*rpc), "softmax": rows_of(softmax)})
    told = {arm: {seed: bits.tolist() for seed, bits in seeds.items()} for arm, seeds in found.items()}
    assert told == {
        "rpc": {0: [False, True, False], 1: [True, True, False]},
        "softmax": {1: [False, False, True]},
    }, "what is held out of training, where data lie and how large they are read changes no test image"


@pytest.mark.parametrize(
    ("columns", "data", "why"),
    [
        ({}, {"name": "mnist"}, "data.name is mnist, not digits"),
        ({"split": "validation"}, {}, "split is validation, not test"),
        ({"path": "/photos"}, {}, "path is /photos, not "),
    ],
)
def test_other_images_are_refused(tmp_path: Path, columns: dict[str, Any], data: dict[str, Any], why: str) -> None:
    ours = run_of(tmp_path, "ours", 0, [row([1, 0])])
    other = run_of(tmp_path, "other", 0, [row([1, 0], **columns)], **data)
    with pytest.raises(RunError) as fault:
        right_of({"ours": rows_of(ours), "other": rows_of(other)})
    assert str(fault.value) == f"{other.folder}: was measured on other images than {ours.folder}: {why}"


def test_rows_without_a_split_are_of_the_test_images(tmp_path: Path) -> None:
    """So they were written before the column came; beside others they are read as NaN."""
    runs = [run_of(tmp_path, "ours", seed, [row([1, 0])]) for seed in (0, 1)]
    other = run_of(tmp_path, "other", 0, [row([0, 1])])
    found = right_of({"ours": rows_of(*runs).assign(split=float("nan")), "other": rows_of(other)})
    assert sorted(found["ours"]) == [0, 1]


def test_another_number_of_images_is_refused_within_an_arm(tmp_path: Path) -> None:
    runs = [run_of(tmp_path, "ours", seed, [row([1] * (seed + 2))]) for seed in (0, 1)]
    with pytest.raises(RunError, match=r"images is 3, not 2$"):
        right_of({"ours": rows_of(*runs)})


def test_validation_images_are_others_where_another_share_is_held_out(tmp_path: Path) -> None:
    ours = run_of(tmp_path, "ours", 0, [row([1, 0], split="validation")])
    other = run_of(tmp_path, "other", 0, [row([1, 0], split="validation")], validation=0.2)
    with pytest.raises(RunError, match=r"data.validation is 0.2, not None$"):
        right_of({"ours": rows_of(ours), "other": rows_of(other)})


def test_one_condition_and_rows_that_say_which_were_right(tmp_path: Path) -> None:
    run = run_of(tmp_path, "ours", 0, [row([1, 0]), row([0, 0], severity=3)])
    with pytest.raises(RunError, match=r"ours/0: seed 0 of arm has several rows of one condition, where one counts"):
        right_of({"arm": rows_of(run)})
    old = run_of(tmp_path, "old", 0, [{key: value for key, value in row([1, 0]).items() if key != "correct"}])
    with pytest.raises(RunError, match=r"old/0: its rows do not say which images were right; measure again with --ag"):
        right_of({"arm": rows_of(old)})


def test_tables_do_not_show_the_bits(tmp_path: Path) -> None:
    run = run_of(tmp_path, "ours", 0, [row([1, 0])])
    assert "correct" in rows_of(run)
    assert "correct" not in frame([run], "eval.csv")
