"""``kattn power``: what is there can see so much, and more takes so many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import Said, kattn
from statsmodels.stats.power import TTestPower  # type: ignore[import-untyped]

from kattn_cli.runs.bits import packed
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import create_run

ACCURACIES = {"a": [90.0, 91.0, 90.5, 89.5], "b": [91.0, 91.2, 91.5, 91.3]}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name, accuracies in ACCURACIES.items():
        for seed, top1 in enumerate(accuracies):
            manifest = {"status": "finished", "start": f"2026-01-0{seed + 1}", "mechanism": name}
            run = create_run(tmp_path, name, seed, "", manifest)
            write_rows(run.folder / "eval.csv", [{"split": "test", "severity": 0, "images": 1000, "top1": top1}])
    return tmp_path


def power(capfd: pytest.CaptureFixture[str], results: Path, *arguments: str) -> Said:
    return kattn(capfd, "power", *arguments, "--results", results)


def cells(said: Said) -> dict[str, str]:
    """By the heading of the column; of a table with one row whose cells hold no two blanks."""
    head, row, *_ = said.out.splitlines()
    starts = [head.index(word) for word in ("effect", "seeds", "power", "smallest seen", "seeds it takes")]
    words = row.split()
    assert len(starts) == 5
    return dict(zip(("seeds it takes", "smallest seen", "power", "seeds", "effect"), words[::-1], strict=False))


def test_the_power_is_that_of_the_paired_t_test(capfd: pytest.CaptureFixture[str], results: Path) -> None:
    said = power(capfd, results, "b", "--against", "a", "--effect", "1.5")
    assert said.code == 0, said.err
    differences = np.subtract(ACCURACIES["b"], ACCURACIES["a"])
    expected = TTestPower().power(1.5 / differences.std(ddof=1), 4, 0.05)
    found = cells(said)
    assert float(found["power"]) == pytest.approx(expected, abs=0.005)
    needed = TTestPower().solve_power(1.5 / differences.std(ddof=1), None, 0.05, 0.8)
    assert int(found["seeds it takes"]) == int(np.ceil(needed))
    assert (found["seeds"], found["effect"]) == ("4", "1.5")


def test_answers_say_how_many_images_it_takes(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    hard = generator.random(400)
    for name, shift in (("a", 0.0), ("b", 0.05)):
        for seed in range(4):
            right = generator.random(400) < np.clip(hard + shift, 0, 1)
            run = create_run(
                tmp_path, name, seed, "data: {name: digits}\n", {"status": "finished", "start": f"2026-01-0{seed + 1}"}
            )
            row = {"split": "test", "images": 400, "top1": 100 * right.mean(), "correct": packed(right)}
            write_rows(run.folder / "eval.csv", [row])
    small, large = (
        int(
            power(capfd, tmp_path, "b", "--against", "a", "--effect", effect)
            .out.splitlines()[1]
            .split()[-1]
            .replace(",", "")
        )
        for effect in ("4", "8")
    )
    assert small > large > 100


def test_without_a_shared_seed_it_says_so(capfd: pytest.CaptureFixture[str], results: Path) -> None:
    said = power(capfd, results, "b/0", "--against", "a/1")
    assert said.code == 2
    assert "b/0 and a/1: share no seed with a row of eval.csv that fits" in said.err


def test_words_that_go_with_runs_need_runs(capfd: pytest.CaptureFixture[str], results: Path) -> None:
    said = power(capfd, results, "quick", "--value", "loss")
    assert said.code == 2
    assert "--table, --where and --value: are for runs; name others with --against" in said.err


def test_a_study_without_measurements_says_so(capfd: pytest.CaptureFixture[str], results: Path) -> None:
    said = power(capfd, results, "quick")
    assert said.code == 2
    assert "quick: nothing is measured yet that its comparisons share; a few seeds are a pilot" in said.err


@pytest.mark.parametrize("where", ["attack", "=pgd"])
def test_a_row_is_chosen_by_column_and_value(capfd: pytest.CaptureFixture[str], results: Path, where: str) -> None:
    said = power(capfd, results, "b", "--against", "a", "--where", where)
    assert said.code == 2
    assert f"--where {where}: expected COLUMN=VALUE, for example attack=pgd" in said.err
