"""Subcommands as processes: several at once, each number once, failures and stops passed on."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from kattn_cli.commands import subcommand
from kattn_cli.commands.subcommand import call, call_all
from kattn_cli.errors import KattnError, Stopped

SCRIPT = "import sys, time, pathlib; time.sleep({seconds}); pathlib.Path({path!r}).write_text('done'); sys.exit({code})"


@pytest.fixture
def python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python itself be run in the place of kattn: ``-m kattn_cli -c …`` becomes ``-c …``."""
    popen = subcommand.subprocess.Popen
    monkeypatch.setattr(subcommand.subprocess, "Popen", lambda words, **more: popen([words[0], *words[3:]], **more))


def script(path: Path, code: int = 0, seconds: float = 0.0) -> list[str]:
    return ["-c", SCRIPT.format(seconds=seconds, path=str(path), code=code)]


@pytest.mark.usefixtures("python")
def test_every_command_ends_once(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abcd"]
    commands = [script(path, seconds=0.3 if path.name == "a" else 0.0) for path in paths]
    ended = list(call_all(commands, jobs=2))
    assert sorted(ended) == [0, 1, 2, 3]
    assert ended[0] != 0, "the slow one did not hold up the others"
    assert all(path.read_text() == "done" for path in paths)


@pytest.mark.usefixtures("python")
def test_after_a_failure_nothing_more_begins_and_what_is_at_work_ends(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abcd"]
    commands = [script(paths[0], code=2), script(paths[1], seconds=0.5), *(script(path) for path in paths[2:])]
    with pytest.raises(KattnError, match="failed with exit code 2: kattn -c"):
        list(call_all(commands, jobs=2))
    assert [path.exists() for path in paths] == [True, True, False, False]


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("code", [130, 143])
def test_a_stop_is_passed_on(tmp_path: Path, code: int) -> None:
    with pytest.raises(Stopped, match="the same command goes on from here"):
        call(script(tmp_path / "a", code=code))


@pytest.mark.usefixtures("python")
def test_a_request_to_end_is_passed_on(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abc"]
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(Stopped, match="the same command goes on from here") as caught:
        list(call_all([script(path, seconds=60) for path in paths], jobs=2))
    assert caught.value.code == 143
    assert not any(path.exists() for path in paths)
