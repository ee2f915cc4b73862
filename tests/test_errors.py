"""What is said when the user errs or stops."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kattn_cli import cli
from kattn_cli.errors import Stopped, did_you_mean, stoppable


def test_the_nearest_name() -> None:
    assert did_you_mean("depht", ["dim", "depth"]) == '; did you mean "depth"?'
    assert did_you_mean("zzz", ["dim", "depth"]) == ""


def test_ctrl_c_says_what_was_kept() -> None:
    with pytest.raises(Stopped, match=r"^Stopped; the rows are kept$") as caught, stoppable("the rows are kept"):
        raise KeyboardInterrupt
    assert caught.value.code == 130


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: you tried"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        torch.OutOfMemoryError("CUDA out of memory"),
    ],
    ids=repr,
)
def test_memory_that_is_refused_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused() -> None:
        raise error

    monkeypatch.setattr(cli, "app", refused)
    with pytest.raises(SystemExit, match=r"^2$"):
        cli.main()
    said = capfd.readouterr().err
    assert said.startswith("There is not enough memory here, or a limit on it is too low (ulimit -v): ")
    assert said.count("\n") == 1


def test_other_errors_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken() -> None:
        raise RuntimeError("memory format")

    monkeypatch.setattr(cli, "app", mistaken)
    with pytest.raises(RuntimeError, match="memory format"):
        cli.main()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_output_on_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "kattn_cli", "list", "attacks"]
        said = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (said.returncode, said.stderr) == (2, "What is printed cannot be written: No space left on device\n")
