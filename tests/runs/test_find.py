"""Which folders are runs: never those that are being written, vanish, or are damaged."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kattn_cli.errors import RunError
from kattn_cli.runs.find import all_runs, find_runs
from kattn_cli.runs.run import Run, create_run

DEAD = 2**22 + 12345
RECIPE = "name: a/b\nseed: 0\n"


def make(results: Path, name: str = "a/b", seed: int = 0) -> Run:
    return create_run(results, name, seed, RECIPE, {"status": "finished", "start": "2026-01-01"})


def test_what_is_being_written_is_no_run(tmp_path: Path) -> None:
    run = make(tmp_path)
    left = run.folder / f".manifest.json.{socket.gethostname()}.{DEAD}"
    whole = run.folder.parent / f".0.{socket.gethostname()}.{DEAD}" / "0"
    shutil.copytree(run.folder, whole)
    left.mkdir()
    shutil.copy(run.folder / "manifest.json", left)
    assert all_runs(tmp_path, unreadable=True) == find_runs(tmp_path, ["a"]) == [run]
    assert all_runs(run.folder) == [run]


def test_a_run_that_vanishes_during_a_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, gone, later = make(tmp_path), make(tmp_path, "a/gone").folder, make(tmp_path, "a/later").folder
    scan, read = os.scandir, Path.read_text

    def scanned(path: Any) -> Any:
        if path in (gone, str(gone)):
            shutil.rmtree(gone)
        return scan(path)

    def text(path: Path, **how: Any) -> str:
        if path.parent == later:
            shutil.rmtree(later)
        return read(path, **how)

    monkeypatch.setattr("os.scandir", scanned)
    monkeypatch.setattr(Path, "read_text", text)
    assert all_runs(tmp_path, unreadable=True) == [run]
    assert not gone.exists()
    assert not later.exists()


def test_a_loop_of_links_is_passed_over(tmp_path: Path) -> None:
    run = make(tmp_path)
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "self").symlink_to("self")
    (tmp_path / "a" / "0").mkdir()
    (tmp_path / "a" / "0" / "manifest.json").symlink_to("manifest.json")
    assert find_runs(tmp_path, ["a"]) == find_runs(tmp_path, []) == [run]
    for name in ("a/self", str(tmp_path / "a" / "self")):
        with pytest.raises(RunError, match="no such run"):
            find_runs(tmp_path, [name])
    with pytest.raises(RunError, match="Too many levels of symbolic links"):
        _ = find_runs(tmp_path, ["a/0"])[0].manifest


KILLED = """
import os, pathlib, shutil, sys
from kattn_cli.runs.run import create_run
results, calls = pathlib.Path(sys.argv[1]), sys.argv[2].split(",")

def dying(real, deaths):
    def call(*arguments, **options):
        deaths[0] -= 1
        if deaths[0] < 0:
            os._exit(9)
        return real(*arguments, **options)
    return call

def attempt(deaths):
    for name in calls:
        setattr(os, name, dying(getattr(os, name), deaths))
    create_run(results, "a", 0, "name: a", {"status": "created"})
    os._exit(0)

k = 0
while True:
    child = os.fork()
    if not child:
        attempt([k])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    runs = [path for path in results.glob("a/*") if not path.name.startswith(".")]
    print(code, *(f"{run.name}:{'+'.join(sorted(path.name for path in run.iterdir()))}" for run in runs), flush=True)
    if not code:
        break
    for run in runs:
        shutil.rmtree(run)
    k += 1
"""


def test_killed_while_a_run_is_made(tmp_path: Path) -> None:
    """Before it is whole there is no folder of its name, and the next run sweeps what is left."""
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), "mkdir,open,fsync,replace,rename,rmdir"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    lines = done.stdout.splitlines()
    whole = [line for line in lines if line == "9 0:manifest.json+recipe.yaml"]
    assert lines == ["9"] * (len(lines) - len(whole) - 1) + whole + ["0 0:manifest.json+recipe.yaml"]
    assert len(lines) - len(whole) > 5
    assert len(all_runs(tmp_path, unreadable=True)) == 1
    assert not list((tmp_path / "a").glob(".*"))


def test_a_folder_in_which_nothing_is_gives_way(tmp_path: Path) -> None:
    """As processes of earlier versions left it that died before there was a manifest."""
    (tmp_path / "a" / "b" / "0").mkdir(parents=True)
    (tmp_path / "a" / "b" / "1" / f".recipe.yaml.{socket.gethostname()}.{DEAD}").mkdir(parents=True)
    alive = tmp_path / "a" / "b" / "2" / f".recipe.yaml.{socket.gethostname()}.{os.getppid()}"
    alive.mkdir(parents=True)
    (tmp_path / "a" / "b" / "3").mkdir()
    (tmp_path / "a" / "b" / "3" / "notes.txt").write_text("mine")
    assert [make(tmp_path, seed=seed).folder.name for seed in range(4)] == ["0", "1", "2-2", "3-2"]
    assert alive.is_dir()


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"name": "a/b"}', "\0"], ids=["cut", "deep", "keys", "nul"])
def test_a_damaged_manifest_is_named(text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = make(tmp_path)
    path = run.folder / "manifest.json"
    path.write_text(text)
    line = '{"name": "a/b", "seed": 0, "status": "interrupted"}'
    words = (
        rf"{re.escape(str(path))}: cannot be read as a manifest \(.+\); mend it or put back a copy of it, or write "
        rf"{re.escape(line)} there, which is enough to measure the run, and kattn train {run.folder} --resume adds .+"
    )
    for references in ([], ["a"], ["a/b"]):
        with pytest.raises(RunError) as caught:
            find_runs(tmp_path, references)
        assert re.fullmatch(words, str(caught.value))
    (named,) = find_runs(tmp_path, ["a/b/0"])
    with pytest.raises(RunError, match="cannot be read as a manifest"):
        _ = named.manifest
    sound = make(tmp_path, seed=1)
    assert find_runs(tmp_path, ["a"]) == [sound]
    assert re.fullmatch(f"Left out: {words}\n", capfd.readouterr().err)
    path.write_text(line)
    assert find_runs(tmp_path, ["a"]) == [run, sound]
