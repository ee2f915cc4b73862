"""Images and sequences beside one paper, in one table and as text."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from papers.laid import laid, sections_of
from sequence_runs import write_classified

from kattn_cli.papers import PAPERS
from kattn_cli.papers.beside import COLUMNS
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run, create_run

VOWELS = {"name": "uea", "set": "JapaneseVowels"}


def image_of(results: Path, top1: float = 80) -> Run:
    recipe = {
        "data": {"name": "digits"},
        "model": {"name": "vit", "depth": 2, "dim": 64},
        "attention": {"name": "softmax"},
        "train": {"epochs": 3},
    }
    run = create_run(results, "images/softmax", 0, yaml.safe_dump(recipe), {"status": "finished", "start": "2026"})
    write_rows(run.folder / "eval.csv", [{"split": "test", "severity": 0, "images": 9, "top1": top1, "top5": 99.0}])
    return run


@pytest.fixture
def both(tmp_path: Path) -> list[Run]:
    series = write_classified(tmp_path, "series/softmax", 0, VOWELS, 90)
    return [image_of(tmp_path), series]


def test_images_and_sequences_are_joined(both: list[Run]) -> None:
    table = laid(both, "primal")
    assert list(table.columns) == COLUMNS
    assert set(table["paper_name"]) == {"primal"}
    accuracies = table[table["metric"] == "top1"].set_index("table")
    assert accuracies["mean"].to_dict() == {"table7a": 80, "table1": 90}
    assert accuracies["paper"].to_dict() == {"table7a": 74.2, "table1": 98.7}
    assert accuracies["measured"].to_dict() == {"table7a": "clean test set", "table1": ""}
    assert not table[["measured", "share", "differs", "setting"]].isna().any(axis=None)
    assert [one.title.split(": ")[0] for one in sections_of(table, "primal")] == [
        "Primal-Attention paper, Table 7(a)",
        "Primal-Attention paper, Tables 1 and 2",
    ]


def test_some_tables_alone(both: list[Run]) -> None:
    table = laid(both, "primal", ["table1"])
    assert set(table["table"]) == {"table1"}
    assert len(sections_of(table, "primal")) == 1


@pytest.mark.parametrize("paper", PAPERS)
def test_runs_that_lack_tables(paper: str, both: list[Run], tmp_path: Path) -> None:
    """Nothing to say has the same shape as something."""
    new = create_run(tmp_path / "new", "a", 0, "model: {name: vit}\n", {"status": "running", "start": "2026"})
    for runs in ([], [new]):
        table = laid(runs, paper)
        assert (len(table), sections_of(table, paper), list(table.columns)) == (0, [], COLUMNS)
    assert laid(both, paper, ["table99"]).empty
