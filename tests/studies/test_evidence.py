"""Which rows of which runs a measure is the mean of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studies.test_study import STUDY, loaded

from kattn_cli.errors import KattnError
from kattn_cli.runs.bits import packed
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run, create_run
from kattn_cli.studies.evidence import missing, numbers
from kattn_cli.studies.study import Study

RIGHT = {0: [1, 1, 1, 0], 1: [1, 1, 0, 0], 2: [1, 0, 0, 0]}
"""By seed."""


def a_run(results: Path, arm: str, seed: int, rows: Mapping[str, list[dict[str, Any]]], data: str = "digits") -> Run:
    run = create_run(
        results,
        arm,
        seed,
        f"data: {{name: {data}}}\n",
        {"status": "finished", "start": f"2026-01-0{seed + 1}", "mechanism": arm},
    )
    for file, some in rows.items():
        write_rows(run.folder / file, some)
    return run


def evaluated(right: list[int], **columns: Any) -> dict[str, Any]:
    row = {"split": "test", "corruption": "", "severity": 0, "images": len(right), "top1": 100 * float(np.mean(right))}
    return {**row, **columns, "correct": packed(np.array(right, bool))}


def three(results: Path, arm: str) -> dict[int, Run]:
    return {seed: a_run(results, arm, seed, {"eval.csv": [evaluated(right)]}) for seed, right in RIGHT.items()}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return loaded(tmp_path)


def test_a_measure_is_a_number_and_the_answers_of_each_seed(tmp_path: Path, study: Study) -> None:
    found = numbers(study, {"b": three(tmp_path, "b")}, "clean")
    assert found["b"].values == {0: 75.0, 1: 50.0, 2: 25.0}
    assert {seed: one.tolist() for seed, one in found["b"].right.items()} == RIGHT
    assert found["b"].images == 4
    assert found["a"].values == {}


def test_rows_of_another_attention_are_another_arm_s(tmp_path: Path, study: Study) -> None:
    runs = three(tmp_path, "b")
    for run in runs.values():
        own = evaluated([1, 1, 1, 1], run_as="")
        write_rows(run.folder / "eval.csv", [own, evaluated([0, 0, 0, 1], run_as="quickstart/symmetric")])
    found = numbers(study, {"b": runs}, "clean")
    assert set(found["b"].values.values()) == {100.0}
    assert set(found["b_as_a"].values.values()) == {25.0}


def test_a_run_with_fewer_rows_than_others_is_not_measured_yet(tmp_path: Path) -> None:
    study = loaded(
        tmp_path, STUDY.replace("{run: eval, margin: 1}", "{run: eval, where: {severity: [1, 2]}, margin: 1}")
    )
    runs = three(tmp_path, "b")
    for seed, run in runs.items():
        rows = [evaluated(RIGHT[seed], severity=severity) for severity in ((1, 2) if seed else (1,))]
        write_rows(run.folder / "eval.csv", rows)
    assert set(numbers(study, {"b": runs}, "clean")["b"].values) == {1, 2}
    assert missing(study, {"b": runs}, "clean") == {"b": [runs[0]], "b_as_a": list(runs.values())}


def test_clean_images_are_meant_where_nothing_is_said(tmp_path: Path, study: Study) -> None:
    rows = [evaluated([1, 1, 1, 0]), evaluated([0, 0, 0, 0], severity=3), evaluated([0, 0], split="validation")]
    run = a_run(tmp_path, "b", 0, {"eval.csv": rows})
    assert numbers(study, {"b": {0: run}}, "clean")["b"].values == {0: 75.0}


def test_several_rows_are_one_share_of_each_image(tmp_path: Path) -> None:
    study = loaded(
        tmp_path, STUDY.replace("{run: eval, margin: 1}", "{run: eval, where: {severity: [1, 2]}, margin: 1}")
    )
    rows = [evaluated([1, 1, 0, 0], severity=1), evaluated([1, 0, 0, 0], severity=2), evaluated([0, 0, 0, 0])]
    run = a_run(tmp_path, "b", 0, {"eval.csv": rows})
    (only,) = numbers(study, {"b": {0: run}}, "clean")["b"].right.values()
    assert only.tolist() == [1.0, 0.5, 0.0, 0.0]


def test_the_limit_of_images_chooses_the_rows(tmp_path: Path, study: Study) -> None:
    attacked = [{"attack": "pgd", "epsilon": 4 / 255, "images": images, "clean_top1": 90.0, "top1": top1}
                for images, top1 in ((20, 40.0), (2000, 50.0))]  # fmt: skip
    run = a_run(tmp_path, "b", 0, {"attacks.csv": attacked})
    assert numbers(study, {"b": {0: run}}, "pgd")["b"].values == {0: 40.0}


@pytest.mark.parametrize(("epsilon", "top1"), [("4/255", 50.0), (0.0156862745, 50.0), ("8/255", 30.0)])
def test_fractions_find_their_rows(tmp_path: Path, epsilon: str | float, top1: float) -> None:
    where = f"attack --pgd, where: {{epsilon: {epsilon}}}, margin: 3, images: 20"
    study = loaded(tmp_path, STUDY.replace("attack --pgd, margin: 3, images: 20", where))
    attacked = [{"attack": "pgd", "epsilon": size / 255, "images": 20, "clean_top1": 90.0, "top1": value}
                for size, value in ((4, 50.0), (8, 30.0))]  # fmt: skip
    run = a_run(tmp_path, "b", 0, {"attacks.csv": attacked})
    assert numbers(study, {"b": {0: run}}, "pgd")["b"].values == {0: top1}


def test_among_counts_what_was_right_before(tmp_path: Path) -> None:
    more = "  loss: {run: eval, where: {severity: 3}, among: clean, margin: 1}\n"
    study = loaded(
        tmp_path, "".join(line if "  loss:" not in line else more for line in STUDY.splitlines(keepends=True))
    )
    rows = [evaluated([1, 1, 1, 0]), evaluated([1, 0, 1, 1], severity=3)]
    run = a_run(tmp_path, "b", 0, {"eval.csv": rows})
    (share,) = numbers(study, {"b": {0: run}}, "loss")["b"].values.values()
    assert share == pytest.approx(100 * 2 / 3)


def test_the_last_row_is_the_greatest_number(tmp_path: Path) -> None:
    study = loaded(
        tmp_path, STUDY.replace("value: loss, margin", "value: loss, where: {split: validation, epoch: last}, margin")
    )
    metrics = [{"epoch": epoch, "step": epoch, "split": "validation", "loss": 1 / epoch} for epoch in (1, 2, 10)]
    run = a_run(tmp_path, "b", 0, {"metrics.csv": metrics})
    assert numbers(study, {"b": {0: run}}, "loss")["b"].values == {0: 0.1}


def test_an_unknown_column_names_the_nearest(tmp_path: Path) -> None:
    study = loaded(tmp_path, STUDY.replace("{run: eval, margin: 1}", "{run: eval, where: {spilt: test}, margin: 1}"))
    run = a_run(tmp_path, "b", 0, {"eval.csv": [evaluated([1])]})
    with pytest.raises(KattnError, match=r'measure clean: eval\.csv has no column spilt; did you mean "split"'):
        numbers(study, {"b": {0: run}}, "clean")


def test_a_number_that_is_none_stays_and_is_no_mean_of_others(tmp_path: Path, study: Study) -> None:
    rows = [{"epoch": 1, "step": 1, "split": "train", "loss": loss} for loss in (1.0, float("nan"))]
    run = a_run(tmp_path, "b", 0, {"metrics.csv": rows})
    assert np.isnan(numbers(study, {"b": {0: run}}, "loss")["b"].values[0])


def test_answers_to_other_images_are_not_the_same(tmp_path: Path, study: Study) -> None:
    rows = {"eval.csv": [evaluated([1, 1, 0, 0])]}
    runs = {"a": {0: a_run(tmp_path, "a", 0, rows, data="mnist")}, "b": {0: a_run(tmp_path, "b", 0, rows)}}
    found = numbers(study, runs, "clean")
    assert found["a"].answers_as(found["a"])
    assert not found["a"].answers_as(found["b"])
