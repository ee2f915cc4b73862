"""One process at a time, until it is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from threading import Timer

import pytest

import kattn_cli
from kattn_cli.errors import RunError
from kattn_cli.runs import lock as lock_module
from kattn_cli.runs.csv_rows import read_rows, replace_rows
from kattn_cli.runs.lock import WRITING, Held, holding, writing
from kattn_cli.runs.run import create_run

HOLDER = """
import sys, time
from pathlib import Path
from kattn_cli.runs.lock import holding
with holding(Path(sys.argv[1]), "it is done"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_held_by_another_process_until_that_is_killed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    environment = {**os.environ, "PYTHONPATH": str(Path(kattn_cli.__file__).parents[1])}
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdout=PIPE, text=True, env=environment) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        told = f"the run is trained by process {holder.pid} on host {socket.gethostname()}"
        with pytest.raises(Held, match=f"^{told}$"), holding(lock, "the run is trained"):
            pass
        holder.kill()
        holder.wait()
    with holding(lock, "the run is trained"):
        assert lock.read_text() == f"process {os.getpid()} on host {socket.gethostname()}\n"


WRITER = """
import os, sys
from pathlib import Path
from kattn_cli.runs.csv_rows import append_rows, replace_rows
from kattn_cli.runs.run import Run
os.fsync = lambda _: None
folder, own, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.read()
for k in range(count):
    replace_rows(folder / "eval.csv", [{"corruption": f"{own}-{k}", "top1": k}])
    append_rows(folder / "metrics.csv", [{"who": f"{own}-{k}", own: 1}])
    Run(folder).add_measurement({"command": f"{own}-{k}"})
    Run(folder).update(**{f"{own}-{k}": k})
"""


def test_processes_that_write_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    """Four of them make 400 changes of one run."""
    run, count = create_run(tmp_path, "a", 0, "", {"status": "finished"}), 25
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(run.folder), own, str(count)], stdin=PIPE, stdout=PIPE
                )
            )
            for own in "abcd"
        ]
        pipes = [(process.stdin, process.stdout) for process in processes]
        assert [out.readline() for _, out in pipes if out] == [b"ready\n"] * 4
        for into, _ in pipes:
            assert into
            into.close()
    assert [process.returncode for process in processes] == [0] * 4
    wanted = {f"{own}-{k}" for own in "abcd" for k in range(count)}
    for table, column in (("eval", "corruption"), ("metrics", "who")):
        rows = [row[column] for row in read_rows(run.folder / f"{table}.csv")]
        assert len(rows) == len(wanted)
        assert set(rows) == wanted
    manifest = run.manifest
    assert {one["command"] for one in manifest["measurements"]} == wanted
    assert wanted <= set(manifest)


def test_threads_that_write_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    def write(k: int) -> None:
        replace_rows(tmp_path / "eval.csv", [{"corruption": str(k), "top1": k}])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert {int(row["corruption"]) for row in read_rows(tmp_path / "eval.csv")} == set(range(40))


BUSY = """
import sys, time
from pathlib import Path
from kattn_cli.runs.lock import writing
with writing(Path(sys.argv[1])), writing(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_who_writes_for_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "eval.csv"
    with subprocess.Popen([sys.executable, "-c", BUSY, str(table)], stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdin
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with monkeypatch.context() as patch:
            patch.setattr(lock_module, "PATIENCE", 0.1)
            with pytest.raises(Held) as caught:
                replace_rows(table, [{"a": 1}])
        who = f"process {other.pid} on host {socket.gethostname()}"
        assert str(caught.value) == (
            f"{table}: its folder is being written to by {who}, for 0 s now; end it, or try again"
        )
        assert not table.exists()
        Timer(0.2, other.stdin.close).start()
        replace_rows(table, [{"a": 1}])
    assert read_rows(table) == [{"a": "1"}]


def test_a_thread_that_writes_for_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "PATIENCE", 0.1)
    table = tmp_path / "eval.csv"
    with writing(table), ThreadPoolExecutor(1) as pool:
        with pytest.raises(Held, match=r"eval\.csv: its folder is being written to by another thread, for 0 s now$"):
            pool.submit(replace_rows, table, [{"a": 1}]).result()
        replace_rows(table, [{"a": 2}])
    assert read_rows(table) == [{"a": "2"}]


def test_a_child_does_not_have_its_parents_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "PATIENCE", 0.1)
    table = tmp_path / "eval.csv"
    with writing(table):
        child = os.fork()
        if not child:
            try:
                replace_rows(table, [{"a": 1}])
            except Held:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_lock_is_for_all_who_may_write_to_its_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    before = os.umask(0o077)
    try:
        with writing(tmp_path / "eval.csv"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / WRITING).stat().st_mode & 0o777 == 0o664


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"lock: cannot be written: No such file"), holding(tmp_path / "a" / "lock", ""):
        pass
