"""Run folders: never shared, always readable."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from kattn_cli.errors import RunError
from kattn_cli.results import (
    Run,
    append_rows,
    create_run,
    find_runs,
    read_rows,
    replace_rows,
    write_rows,
    write_text,
)


def make(results: Path, name: str = "a/b", seed: int = 0, **manifest: object) -> Run:
    return create_run(results, name, seed, "name: x\n", {"status": "finished", "start": "2026-01-01", **manifest})


def test_runs_begun_at_once_never_share_a_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: make(tmp_path), range(24)))
    folders = {run.folder.name for run in runs}
    assert folders == {"0", *(f"0-{k}" for k in range(2, 25))}
    assert all(run.manifest["name"] == "a/b" for run in runs)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(RunError, match=r"is in the way|cannot be made"):
        make(tmp_path, "a")


def test_manifest_follows_a_run(tmp_path: Path) -> None:
    run = make(tmp_path, overrides=["train.epochs=5", "seed=3"])
    assert run.label == "a/b train.epochs=5"
    run.begin()
    assert run.status == "running"
    run.update(pid=2**22 + 12345)
    assert run.status == "died"
    run.end("failed", reason="x")
    assert (run.status, run.manifest["reason"]) == ("failed", "x")
    run.add_measurement({"command": "kattn eval"})
    assert [record["command"] for record in run.manifest["measurements"]] == ["kattn eval"]


def test_broken_manifest(tmp_path: Path) -> None:
    run = make(tmp_path)
    (run.folder / "manifest.json").write_text("{")
    with pytest.raises(RunError, match="cannot be read as a manifest"):
        _ = run.manifest


def test_find_runs(tmp_path: Path) -> None:
    first = make(tmp_path, "a/b", 0, start="2026-01-01")
    second = make(tmp_path, "a/c", 0, start="2026-01-02")
    make(tmp_path, "reference/d", 0, start="2026-01-03")
    assert find_runs(tmp_path, []) == [second]
    assert find_runs(tmp_path, ["a"]) == [first, second]
    assert find_runs(tmp_path, ["a/b/0"]) == [first]
    assert find_runs(tmp_path, [str(first.folder), "a"]) == [first, second]
    with pytest.raises(RunError, match=r'no such run under .*; did you mean "a/b"'):
        find_runs(tmp_path, ["a/bb"])


def test_a_name_means_the_newest_finished_run_of_each_seed(tmp_path: Path) -> None:
    make(tmp_path, "a", 0, start="2026-01-01")
    newer = make(tmp_path, "a", 0, start="2026-01-02")
    make(tmp_path, "a", 0, start="2026-01-03", status="failed")
    other = make(tmp_path, "a", 0, start="2026-01-01", overrides=["train.epochs=5"])
    assert find_runs(tmp_path, ["a"]) == [other, newer]
    assert find_runs(tmp_path, ["a/0"]) == [Run(tmp_path / "a" / "0")]


def test_no_runs_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        find_runs(tmp_path / "results", [])
    assert str(caught.value).endswith("results/ yet. Make one with: kattn train quickstart/softmax")
    with pytest.raises(RunError, match="Make one with: kattn train quickstart/rpc"):
        find_runs(tmp_path / "results", ["quickstart/rpc"])


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    append_rows(path, [{"attack": "pgd", "epsilon": 1 / 255, "top1": 90.0}])
    append_rows(path, [{"attack": "pgd", "epsilon": 2 / 255, "top1": 80.0}])
    replace_rows(path, [{"attack": "pgd", "epsilon": 1 / 255, "top1": 91.0}], ("attack", "epsilon"))
    table = pd.read_csv(path)
    assert table["top1"].tolist() == [80.0, 91.0]
    assert table["epsilon"].tolist() == pytest.approx([2 / 255, 1 / 255], rel=1e-12)
    write_rows(path, [{"a": "x,y"}])
    assert read_rows(path) == [{"a": "x,y"}]
    assert read_rows(tmp_path / "none.csv") == []


def test_files_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.json"
    write_text(path, json.dumps({"a": 1}))

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_text(path, "{")
    assert json.loads(path.read_text()) == {"a": 1}
