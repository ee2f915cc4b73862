"""Files are whole or not there: whatever call fails, and wherever the process is killed."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kattn_cli.errors import RunError
from kattn_cli.runs import whole_file
from kattn_cli.runs.csv_rows import append_rows
from kattn_cli.runs.process import is_alive, start_of
from kattn_cli.runs.whole_file import STALE_SECONDS, faults_as, folders_to_disk, replacing

CALLS = ("mkdir", "write", "fsync", "link", "replace", "rmdir", "unlink")


def write(path: Path, text: str, keep: Path | None = None) -> None:
    with replacing(path, keep) as neighbour:
        neighbour.write_text(text)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_file_before_is_kept(tmp_path: Path) -> None:
    path, keep = tmp_path / "a", tmp_path / "b"
    for number in "123":
        write(path, number, keep)
    assert (path.read_text(), keep.read_text()) == ("3", "2")
    write(path, "4")
    assert (path.read_text(), keep.read_text()) == ("4", "2")
    assert names(tmp_path) == {"a", "b"}


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    test_the_file_before_is_kept(tmp_path)


@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "pathlib.Path.mkdir", "pathlib.Path.write_text"])
def test_a_call_that_fails_changes_nothing(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, keep = tmp_path / "a", tmp_path / "b"
    for number in "12":
        write(path, number, keep)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(call, fail)
        with pytest.raises(RunError) as caught, faults_as(RunError, path):
            write(path, "3", keep)
    assert str(caught.value) == f"{path}: cannot be written: No space left on device"
    assert (path.read_text(), keep.read_text()) == ("2", "1")
    assert names(tmp_path) == {"a", "b"}


KILLED = """
import errno, os, pathlib, sys
from kattn_cli.runs.whole_file import replacing
folder, calls, links = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3] == "True"

def dying(real, deaths):
    def call(*arguments, **options):
        deaths[0] -= 1
        if deaths[0] < 0:
            os._exit(9)
        return real(*arguments, **options)
    return call

def attempt(text, deaths):
    if not links:
        def refuse(*_, **__):
            raise OSError(errno.EPERM, "Operation not permitted")
        os.link = refuse
    for name in calls:
        setattr(os, name, dying(getattr(os, name), deaths))
    with replacing(folder / "a", folder / "b") as neighbour:
        descriptor = os.open(neighbour, os.O_WRONLY | os.O_CREAT)
        for part in (text, "!"):
            os.write(descriptor, part.encode())
        os.close(descriptor)
    os._exit(0)

k = 0
while True:
    child = os.fork()
    if not child:
        attempt(str(k), [k])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = {name: (folder / name).read_text() if (folder / name).exists() else "" for name in "ab"}
    print(code, texts["a"] or "-", texts["b"] or "-", len(list(folder.glob(".*"))), flush=True)
    if not code:
        break
    k += 1
"""


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("links", [True, False])
def test_killed_at_every_call(links: bool, kept: bool, tmp_path: Path) -> None:
    """Once there is a file, one of the names means a whole one; what was left over goes with the next write."""
    (tmp_path / "a").write_text("first!")
    if kept:
        (tmp_path / "b").write_text("zeroth!")
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), ",".join(CALLS), str(links)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) > len(CALLS)
    for code, newest, previous, _ in lines:
        assert code in ("9", "0")
        assert newest.endswith("!") or (newest == "-" and not links and previous.endswith("!"))
        assert previous.endswith("!") or (previous == "-" and not kept)
        assert newest != previous
    assert {left for *_, left in lines} == {"0", "1"}
    assert lines[-1] == ["0", f"{len(lines) - 1}!", lines[-1][2], "0"]


def test_what_killed_processes_left(tmp_path: Path) -> None:
    path, dead = tmp_path / "a.csv", 2**22 + 12345
    mine = f".a.csv.{socket.gethostname()}"
    (tmp_path / f"{mine}.{dead}").mkdir()
    (tmp_path / f"{mine}.{dead}" / "a.csv").write_text("half")
    (tmp_path / f"{mine}.{os.getpid()}").mkdir()
    (tmp_path / f"{mine}.{os.getppid()}").mkdir()
    (tmp_path / f".a.csv.{dead}").write_text("of an earlier version, new")
    for name in (".a.csv.elsewhere.7", ".a.csv.elsewhere.8", ".a.csv.notes", ".b.csv.elsewhere.7"):
        (tmp_path / name).mkdir()
    past = time.time() - STALE_SECONDS - 60
    for name in (".a.csv.elsewhere.8", ".a.csv.notes", ".b.csv.elsewhere.7"):
        os.utime(tmp_path / name, (past, past))
    write(path, "x")
    young = {f".a.csv.{dead}", f"{mine}.{os.getppid()}", ".a.csv.elsewhere.7"}
    assert names(tmp_path) == {"a.csv", ".a.csv.notes", ".b.csv.elsewhere.7", *young}


def test_a_folder_that_cannot_be_removed_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS keeps what is removed while it is open as ``.nfs…``, and its folder with it."""
    path = tmp_path / "a"
    folder = tmp_path / f".a.{socket.gethostname()}.{os.getpid()}"
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda folder, **_: (folder / ".nfs01").touch())
        for text in "12":
            write(path, text)
    assert names(folder) == {".nfs01"}
    write(path, "3")
    assert path.read_text() == "3"
    assert names(tmp_path) == {"a"}


def test_a_process_number_used_again() -> None:
    start = start_of(os.getpid())
    assert is_alive(os.getpid())
    assert is_alive(os.getpid(), start)
    assert not is_alive(2**22 + 12345)
    assert not is_alive(2**80)
    if start is not None:
        assert not is_alive(os.getpid(), "1")
        assert int(start_of(1) or 0) < int(start)


def test_new_names_outlive_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is on disk is lost all the same where the name of its folder, or its own, is not."""
    safe: list[Path] = []
    monkeypatch.setattr(whole_file, "to_disk", safe.append)
    folders_to_disk(tmp_path / "a/b/c")
    assert set(safe) == {tmp_path / "a/b", tmp_path / "a", tmp_path}
    safe.clear()
    folders_to_disk(tmp_path / "a/b/c")
    assert safe == []
    append_rows(tmp_path / "a/table.csv", [{"epoch": 1}])
    assert safe == [tmp_path / "a"]
    append_rows(tmp_path / "a/table.csv", [{"epoch": 2}])
    assert safe == [tmp_path / "a"], "its name was there"
