"""Tables of costs: rows that stay, and with which table one goes on."""

from __future__ import annotations

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kattn_cli.runs.cost_table import CostTable, going_on
from kattn_cli.runs.csv_rows import new_csv
from kattn_cli.runs.process import start_of

HERE: dict[str, Any] = {
    "command": "kattn x", "commit": "a", "versions": {"torch": "2"}, "machine": {"cores": 2}, "device": "cpu",
    "start": "2026-01-01",
}  # fmt: skip


def opened(folder: Path, resume: bool = False, seconds: float = 0.3, **record: Any) -> CostTable:
    settings = {"n": (1, 2), "seconds": seconds}
    return CostTable.open(folder, "cpu", settings, {**HERE, **record}, ("name", "n"), resume)


def manifest(path: Path) -> dict[str, Any]:
    return json.loads(path.with_suffix(".json").read_text())


def interrupted(folder: Path, **record: Any) -> Path:
    with suppress(KeyboardInterrupt), opened(folder, **record) as table:
        table.append({"name": "a", "n": 1, "value": 0.5})
        raise KeyboardInterrupt
    return table.path


def test_status_from_running_to_complete(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        assert manifest(table.path)["status"] == "running"
        assert manifest(table.path)["pid"] == os.getpid()
        table.append({"name": "a", "n": 1, "value": None})
    said = manifest(tmp_path / "cpu.csv")
    assert (said["status"], said["pid"], said["host"], said["commit"]) == ("complete", None, None, "a")
    assert said["settings"] == {"n": [1, 2], "seconds": 0.3}
    assert said["end"]


def test_rows_are_known_by_their_key(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        assert table.has(name="a", n=1) is None
        table.append({"name": "a", "n": 1, "value": 0.5})
        table.append({"name": "a", "n": 2, "value": 0.7})
        assert table.has(name="a", n=1) == {"name": "a", "n": "1", "value": "0.5"}
        table.append({"name": "a", "n": 1, "value": 0.6})
    assert pd.read_csv(table.path).sort_values("n")["value"].tolist() == [0.6, 0.7]


def test_what_was_interrupted_is_gone_on_with(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = interrupted(tmp_path)
    assert manifest(path)["status"] == "interrupted"
    with opened(tmp_path, resume=True, command="kattn x --resume", start="2026-01-02") as table:
        assert table.path == path
        assert table.has(name="a", n=1) == {"name": "a", "n": "1", "value": "0.5"}
        table.append({"name": "a", "n": 2, "value": 0.7})
    assert capfd.readouterr().out.strip() == f"{path}: going on after 1 row"
    said = manifest(path)
    assert (said["status"], said["command"], said["start"]) == ("complete", "kattn x", "2026-01-01")
    assert said["resumptions"] == [{"command": "kattn x --resume", "commit": "a", "dirty": None,
                                    "versions": {"torch": "2"}, "start": "2026-01-02"}]  # fmt: skip
    assert pd.read_csv(path)["value"].tolist() == [0.5, 0.7]


def test_without_resume_a_new_table_begins(tmp_path: Path) -> None:
    assert interrupted(tmp_path) == tmp_path / "cpu.csv"
    assert interrupted(tmp_path) == tmp_path / "cpu-2.csv"


def test_tables_begun_at_once_never_share_a_file(tmp_path: Path) -> None:
    """Each is there before its first row is."""
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: new_csv(tmp_path, "cpu"), range(16)))
    assert {path.name for path in paths} == {"cpu.csv", *(f"cpu-{k}.csv" for k in range(2, 17))}


def test_the_newest_of_these_settings_is_gone_on_with(tmp_path: Path) -> None:
    interrupted(tmp_path, start="2026-01-03")
    interrupted(tmp_path, start="2026-01-04")
    interrupted(tmp_path, start="2026-01-05", seconds=9.0)
    assert opened(tmp_path, resume=True).path == tmp_path / "cpu-2.csv"


def test_another_commit_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = interrupted(tmp_path)
    assert opened(tmp_path, resume=True, commit="b", versions={"torch": "3"}).path == path
    words = "which were measured with another commit and other packages"
    assert capfd.readouterr().out.strip() == f"{path}: going on after 1 row, {words}"


@pytest.mark.parametrize(
    ("other", "words"),
    [({"machine": {"cores": 9}}, "machine"), ({"device": "cuda:0 (A)", "machine": {}}, "machine and device")],
)
def test_times_of_two_machines_are_not_mixed(
    other: dict[str, Any], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = interrupted(tmp_path)
    assert opened(tmp_path, resume=True, **other).path == tmp_path / "cpu-2.csv"
    assert capfd.readouterr().out.strip() == f"{path}: was begun on another {words}, so a new table begins"


def test_nothing_to_go_on_with_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with opened(tmp_path) as table:
        table.append({"name": "a", "n": 1})
    assert opened(tmp_path, resume=True).path == tmp_path / "cpu-2.csv"
    assert capfd.readouterr().out.strip() == (
        f"--resume: no unfinished table under {tmp_path}/ (the one of these settings is complete), so a new one begins"
    )
    assert opened(tmp_path, resume=True, seconds=9.0).path == tmp_path / "cpu-3.csv"
    assert "(there is none of these settings)" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("process", "goes_on"),
    [
        ({"pid": os.getpid(), "pid_start": start_of(os.getpid()), "host": socket.gethostname()}, False),
        ({"pid": 2**22 + 1, "pid_start": "1", "host": socket.gethostname()}, True),
        ({"pid": 1, "pid_start": "1", "host": "elsewhere"}, False),
    ],
    ids=["alive", "killed", "elsewhere"],
)
def test_what_another_process_fills_is_left_alone(process: dict[str, Any], goes_on: bool, tmp_path: Path) -> None:
    path = interrupted(tmp_path)
    path.with_suffix(".json").write_text(json.dumps({**manifest(path), "status": "running", **process}))
    assert (opened(tmp_path, resume=True).path == path) == goes_on


def test_files_of_other_kinds_are_passed_over(tmp_path: Path) -> None:
    for name, text in (("cpu.json", "{"), ("cpu-2.json", "[1]"), ("cpu-models.json", "{}"), ("cpu-3.json", "{}")):
        (tmp_path / name).write_text(text)
    assert opened(tmp_path, resume=True).path == tmp_path / "cpu.csv"


def test_the_command_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "the rows so far are under results/. Go on with: kattn complexity --attention 'rpc iterations=6' --resume"
    for last in ([], ["--resume"]):
        monkeypatch.setattr("sys.argv", ["kattn", "complexity", "--attention", "rpc iterations=6", *last])
        assert going_on(Path("results")) == said
