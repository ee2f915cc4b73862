"""One process at a time, until it is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import kattn_cli
from kattn_cli.errors import RunError
from kattn_cli.runs.lock import Held, holding

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
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        told = f"the run is trained by process {holder.pid} on host {socket.gethostname()}"
        with pytest.raises(Held, match=f"^{told}$"), holding(lock, "the run is trained"):
            pass
        holder.kill()
        holder.wait()
    with holding(lock, "the run is trained"):
        assert lock.read_text() == f"process {os.getpid()} on host {socket.gethostname()}\n"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"lock: cannot be written: No such file"), holding(tmp_path / "a" / "lock", ""):
        pass
