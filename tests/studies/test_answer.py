"""What came out of a study: its rows, its page, and what the rest would take."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from studies.test_evidence import a_run
from studies.test_judgement import answers, scalars
from studies.test_study import STUDY, loaded

from kattn_cli.runs.run import Run
from kattn_cli.studies.answer import Answer
from kattn_cli.studies.evidence import Numbers
from kattn_cli.studies.judgement import judge
from kattn_cli.studies.page import page
from kattn_cli.studies.registration import register

CLEAN = {"a": answers(0.8, 3), "b": answers(0.8, 5), "b_as_a": answers(0.78, 4)}


def trained(results: Path, arm: str, *seconds: float) -> dict[int, Run]:
    runs = {seed: a_run(results, arm, seed, {}) for seed in range(len(seconds))}
    for seed, run in runs.items():
        run.update(train_seconds=seconds[seed])
    return runs


def answer(folder: Path, text: str = STUDY, **found: dict[str, Numbers]) -> Answer:
    study = loaded(folder, text)
    numbers = {"clean": CLEAN, "pgd": {}, "loss": {}, **found}
    runs = {"a": trained(folder, "a", 3600, 7200), "b": trained(folder, "b", 1800)}
    return Answer(study, runs, numbers, judge(study, numbers), register(study, folder / "page"))


def test_hours_are_of_both_arms_and_of_all_seeds_that_it_takes(tmp_path: Path) -> None:
    found = answer(tmp_path)
    first, second = found.judged
    assert first.decision.seeds_needed is not None
    assert found.hours_needed(first) == pytest.approx(first.decision.seeds_needed * (1.5 + 0.5))
    assert second.comparison.first == "b_as_a"
    assert second.decision.seeds_needed is not None
    assert found.hours_needed(second) == pytest.approx(second.decision.seeds_needed * 0.5), "it has b's runs"


def test_hours_are_unknown_where_the_seeds_are(tmp_path: Path) -> None:
    same = {seed: 80.0 for seed in range(3)}
    found = answer(tmp_path, clean={"a": Numbers(same), "b": Numbers(same), "b_as_a": Numbers(same)})
    assert [math.isnan(found.hours_needed(one)) for one in found.judged] == [True, True]


def test_a_measure_without_a_margin_is_told_with_three_digits(tmp_path: Path) -> None:
    text = STUDY.replace(" margin: 0.1,", "").replace("arms: [b]}", "arms: [a, b]}")
    found = answer(tmp_path, text, loss={"a": scalars(0.0121, 0.0123, 0.0122), "b": Numbers()})
    lines = [line for line in page(found, None, "kattn study mine").splitlines() if line.startswith("| a |")]
    assert "| 0.0122 ± 0.0002 |" in lines[-1]
