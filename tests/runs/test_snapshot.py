"""What reads many runs reads each of their files once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from files_opened import files_opened
from report.runs import write_all

from kattn_cli.commands.list.listing import listing
from kattn_cli.errors import RunError
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.find import find_runs
from kattn_cli.runs.run import RECIPE, Run, Snapshot, create_run
from kattn_cli.tables.values import values

RUNS = {"a/softmax": [80.0] * 10, "a/tssa": [90.0] * 10}


def manifests(folder: Path) -> dict[Path, int]:
    return {path.relative_to(folder): 1 for path in folder.rglob("manifest.json")}


def test_a_list_of_runs_opens_each_manifest_once(tmp_path: Path) -> None:
    write_all(tmp_path, RUNS)
    with files_opened(tmp_path) as opened:
        assert listing("runs", tmp_path).row_count == 20
    assert opened == manifests(tmp_path)


@pytest.mark.parametrize("references", [[], ["a"], ["a/softmax", "a/tssa"]])
def test_runs_are_found_by_opening_each_manifest_once(tmp_path: Path, references: list[str]) -> None:
    write_all(tmp_path, RUNS)
    with files_opened(tmp_path) as opened:
        found = find_runs(tmp_path, references)
    assert len(found) == (20 if references else 1)
    assert opened == manifests(tmp_path)


def test_all_numbers_of_runs_take_each_file_once(tmp_path: Path) -> None:
    runs = write_all(tmp_path, RUNS)
    for run in runs:
        attack = {"attack": "pgd", "epsilon": 4 / 255, "clean_top1": 80.0, "top1": 40.0, "images": 200}
        write_rows(run.folder / "attacks.csv", [attack])
    seen = [Snapshot(run.folder) for run in runs]
    with files_opened(tmp_path) as opened:
        first, again = values(seen), values(seen)
    assert first.equals(again)
    assert set(first["quantity"]) == {"params", "clean", "pgd 4/255"}
    assert set(opened.values()) == {1}
    assert len(opened) == 3 * 20


def test_a_snapshot_stays_as_it_was_and_is_not_written(tmp_path: Path) -> None:
    (seen,) = write_all(tmp_path, {"a/softmax": [80.0]})
    assert (seen.status, seen.records("eval.csv")[1][3]) == ("finished", "80.0")
    Run(seen.folder).update(status="interrupted")
    write_rows(seen.folder / "eval.csv", [{"split": "test", "images": 200, "top1": 1.0}])
    assert (seen.status, seen.records("eval.csv")[1][3]) == ("finished", "80.0")
    with pytest.raises(TypeError, match="a snapshot is not written"):
        seen.end("failed")
    sent = pickle.loads(pickle.dumps(seen))
    assert sent == seen
    assert (sent.status, sent.records("eval.csv")[1]) == ("interrupted", ["test", "200", "1.0"])


def test_a_manifest_that_could_not_be_read_is_read_again(tmp_path: Path) -> None:
    (run,) = write_all(tmp_path, {"a/softmax": [80.0]})
    path = run.folder / "manifest.json"
    text = path.read_text()
    path.write_text(text[:20])
    seen = Snapshot(run.folder)
    assert seen.status == "unreadable"
    path.write_text(text)
    assert seen.status == "finished"


def test_recipes_that_differ_in_their_seed_are_parsed_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"name: a\nseed: {seed}\ndata:\n  seed: 5\n" for seed in range(20)]
    runs = [create_run(tmp_path, "a", seed, text, {"status": "finished"}) for seed, text in enumerate(texts)]
    parsed: list[str] = []
    load = yaml.load

    def counted(text: str, kind: Any) -> Any:
        parsed.append(text)
        return load(text, kind)

    monkeypatch.setattr(yaml, "load", counted)
    assert [run.recipe for run in runs] == [{"name": "a", "seed": seed, "data": {"seed": 5}} for seed in range(20)]
    assert len(parsed) == 1


@pytest.mark.parametrize("text", ["seed: 1\nseed: 2\n", "note: |\n  a\n\n  seed: 7\nseed: 8\n", "seed: x\n"])
def test_recipes_whose_seed_stands_elsewhere_are_parsed_as_they_are(tmp_path: Path, text: str) -> None:
    run = create_run(tmp_path, "a", 0, text, {"status": "finished"})
    assert run.recipe == yaml.safe_load(text)


def test_a_recipe_that_is_none(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", 0, "- 1\n", {"status": "finished"})
    for text in ("- 1\n", "a: [\n", "seed: 3\n b: c\n"):
        (run.folder / RECIPE).write_text(text)
        with pytest.raises(RunError, match=r"recipe\.yaml: cannot be read as a recipe \("):
            _ = Snapshot(run.folder).recipe
