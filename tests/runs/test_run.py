"""Run folders: never shared, always readable."""

from __future__ import annotations

import errno
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from kattn_cli.errors import RunError
from kattn_cli.runs.csv_rows import append_rows, read_rows, replace_rows, whole_rows, write_rows
from kattn_cli.runs.find import all_runs, find_runs
from kattn_cli.runs.run import Run, create_run
from kattn_cli.runs.whole_file import write_text


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


def test_a_run_is_called_after_its_overrides_in_short(tmp_path: Path) -> None:
    begun = "results/language/moe/small/0"
    overrides = ["data.root=x", f"init_from={begun}", "train.epochs=5", f"data.vocabulary_from={begun}"]
    assert make(tmp_path, overrides=overrides).label == "a/b init_from=small/0 train.epochs=5"
    overrides[-1] = "data.vocabulary_from=results/other/1"
    assert make(tmp_path, overrides=overrides).label.endswith("train.epochs=5 data.vocabulary_from=other/1")


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
    replace_rows(path, [{"attack": "pgd", "epsilon": 1 / 255, "top1": 91.0}])
    table = pd.read_csv(path)
    assert table["top1"].tolist() == [91.0, 80.0]
    assert table["epsilon"].tolist() == pytest.approx([1 / 255, 2 / 255], rel=1e-12)
    write_rows(path, [{"a": "x,y"}])
    assert read_rows(path) == [{"a": "x,y"}]
    assert read_rows(tmp_path / "none.csv") == []


def test_a_table_with_other_columns(tmp_path: Path) -> None:
    """Those of an earlier version stay, and are empty where the rows have none; the order is the file's."""
    path = tmp_path / "t.csv"
    append_rows(path, [{"a": 1, "b": 2}])
    append_rows(path, [{"b": 4, "a": 3}])
    append_rows(path, [{"c": "x, y", "a": 5}])
    append_rows(path, [{"b": 6}])
    replace_rows(path, [{"a": 3, "d": "z"}], measured=("b", "c", "d"))
    assert path.read_bytes().splitlines(keepends=True) == [
        b"a,b,c,d\r\n",
        b"1,2,,\r\n",
        b"3,,,z\r\n",
        b'5,,"x, y",\r\n',
        b",6,,\r\n",
    ]


def test_a_row_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    append_rows(path, [{"a": "one\ntwo", "b": 1}])
    append_rows(path, [])
    write_rows(tmp_path / "u.csv", [])
    assert path.read_bytes() == b"a,b\r\none two,1\r\n"
    assert read_rows(tmp_path / "u.csv") == []


ROWS = [{"name": "é, ü", "top1": 90.125}, {"name": "ß", "top1": 80.25}]


def test_rows_cut_off_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a killed process leaves them: read without the torn one, which the next rows do not continue."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    path, whole = tmp_path / "t.csv", tmp_path / "whole.csv"
    append_rows(whole, ROWS)
    text = [{key: str(value) for key, value in row.items()} for row in ROWS]
    data = whole.read_bytes()
    ends = [k + 1 for k, byte in enumerate(data) if byte == ord("\n")]
    for length in range(len(data) + 1):
        complete = max(sum(end <= length for end in ends) - 1, 0)
        path.write_bytes(data[:length])
        assert read_rows(path) == text[:complete]
        assert len(whole_rows(path).splitlines()) == (complete + 1 if length >= ends[0] else 0)
        append_rows(path, ROWS[1:])
        assert read_rows(path) == [*text[:complete], text[1]]
        path.write_bytes(data[:length])
        replace_rows(path, ROWS[:1])
        assert read_rows(path) == [text[0], *text[1:complete]]


def test_a_last_row_that_is_too_short(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,c\r\n1,2,3\r\n4,5\r\n")
    assert len(read_rows(path)) == 1
    append_rows(path, [{"a": 6, "b": 7, "c": 8}])
    assert path.read_bytes() == b"a,b,c\r\n1,2,3\r\n6,7,8\r\n"
    path.write_bytes(b'a,b,c\r\n1,2,3\r\n4,"5,\r\n6",7\r\n')
    assert read_rows(path)[1] == {"a": "4", "b": "5,\r\n6", "c": "7"}


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"a,b\r\n1,2,3\r\n4,5\r\n", "row 2 has 3 fields, and the header 2; mend or remove that row"),
        (b"a,b\r\n1\r\n4,5\r\n", "row 2 has 1 fields, and the header 2"),
        (b"a,b\r\n\xff,2\r\n", "row 2: text in UTF-8 was expected"),
    ],
)
def test_a_table_that_is_damaged(data: bytes, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(RunError) as caught:
        read_rows(path)
    assert str(caught.value).startswith(f"{path}: {fault}")
    with pytest.raises(RunError, match="cannot be read: Is a directory"):
        read_rows(tmp_path)


@contextmanager
def limited(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


LONG = "x" * 3000
WRITES: dict[str, Callable[[Run], object]] = {
    "update": lambda run: run.update(reason=LONG),
    "begin": lambda run: run.begin(reason=LONG),
    "end": lambda run: run.end("failed", reason=LONG),
    "add_measurement": lambda run: run.add_measurement({"command": LONG}),
    "write_text": lambda run: write_text(run.folder / "new" / "recipe.yaml", LONG),
    "append_rows": lambda run: append_rows(run.folder / "t.csv", [{"a": 2}, {"a": LONG}]),
    "append_rows with other columns": lambda run: append_rows(run.folder / "t.csv", [{"b": LONG}]),
    "append_rows to a new file": lambda run: append_rows(run.folder / "new.csv", [{"a": LONG}]),
    "write_rows": lambda run: write_rows(run.folder / "t.csv", [{"a": LONG}]),
    "replace_rows": lambda run: replace_rows(run.folder / "t.csv", [{"a": LONG}]),
    "create_run": lambda run: create_run(run.folder.parent, "new", 0, "name: x\n", {"status": LONG}),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_write_that_fails_changes_nothing(what: str, tmp_path: Path) -> None:
    run = make(tmp_path)
    append_rows(run.folder / "t.csv", [{"a": 1}])
    for folder in (run.folder / "new", run.folder.parent / "new"):
        folder.mkdir()
    before = everything(tmp_path)
    with limited(2000), pytest.raises(RunError) as caught:
        WRITES[what](run)
    assert re.fullmatch(rf"{re.escape(str(tmp_path))}\S+: cannot be written: File too large", str(caught.value))
    assert everything(tmp_path) == before
    append_rows(run.folder / "t.csv", [{"a": 2}])
    assert [row["a"] for row in read_rows(run.folder / "t.csv")] == ["1", "2"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_append_to_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.symlink_to("/dev/full")
    with pytest.raises(RunError) as caught:
        append_rows(path, [{"a": 1}])
    assert str(caught.value) == f"{path}: cannot be written: No space left on device"


def test_a_disk_that_fills_up_in_the_middle_of_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    append_rows(path, [{"a": 1}])

    def fail(_: int) -> None:
        assert path.read_bytes() == b"a\r\n1\r\n2\r\n"
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(RunError, match="No space left on device"):
        append_rows(path, [{"a": 2}])
    assert path.read_bytes() == b"a\r\n1\r\n"


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    """``/proc`` takes no files, from the superuser neither."""
    if not Path("/proc/self").exists():
        pytest.skip("the system has no /proc")
    for write in (
        lambda: create_run(Path("/proc"), "a", 0, "", {}),
        lambda: write_text(Path("/proc/self/m.json"), "{}"),
        lambda: append_rows(Path("/proc/self/t.csv"), [{"a": 1}]),
        lambda: Run(Path("/proc/self")).hold().__enter__(),
    ):
        with pytest.raises(RunError, match=r"^/proc/\S+: cannot be (written|made): \w"):
            write()


def test_the_end_of_a_run_on_a_full_disk(tmp_path: Path) -> None:
    run = make(tmp_path, status="running")
    with limited(100):
        assert not run.try_end("failed", reason=LONG)
    assert run.status == "running"
    assert run.try_end("failed", reason=LONG)
    assert run.status == "failed"


HOLDER = """
import pathlib, sys
from kattn_cli.runs.run import Run
with Run(pathlib.Path(sys.argv[1])).hold():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_never_hold_a_run(tmp_path: Path) -> None:
    run = make(tmp_path)
    for how in ("leaves", "is killed"):
        command = [sys.executable, "-c", HOLDER, str(run.folder)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            with pytest.raises(RunError) as caught, run.hold():
                pass
            host = socket.gethostname()
            assert str(caught.value) == f"{run.folder}: is being trained by process {other.pid} on host {host}"
            if how == "is killed":
                other.kill()
            other.stdin.close()
            other.wait()
            with run.hold():
                pass


def test_a_process_number_of_another_process(tmp_path: Path) -> None:
    run = make(tmp_path)
    run.begin()
    if run.manifest["pid_start"] is None:
        pytest.skip("the system does not tell when a process began")
    run.update(pid_start="1")
    assert run.status == "died"


def test_one_broken_manifest_hides_no_other_run(tmp_path: Path) -> None:
    sound = make(tmp_path, "a/b", 0)
    broken = [make(tmp_path, "a/c", seed) for seed in range(4)]
    for run, text in zip(broken, ("", "{", "[]", '{"name": "a/c", "seed": "0"}'), strict=True):
        (run.folder / "manifest.json").write_text(text)
        assert run.status == "unreadable"
        with pytest.raises(RunError, match=r"manifest\.json: cannot be read as a manifest \("):
            run.update(reason="x")
    assert all_runs(tmp_path) == [sound]
    assert all_runs(tmp_path, unreadable=True) == [*broken, sound]
    assert find_runs(tmp_path, []) == find_runs(tmp_path, ["a"]) == [sound]
