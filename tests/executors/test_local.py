"""Work in processes of this machine, and what is the same for every executor."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kattn_cli.errors import KattnError, RunError, Stopped
from kattn_cli.executors.executor import Outcome, Request, Work, attempt, optional
from kattn_cli.executors.local import LocalExecutor, deal_gpus
from kattn_cli.training.interrupt import Interruption, catch_interruption


def outcomes(work: Work, tasks: Iterable[Any], jobs: int = 2, gpus: int = 0) -> dict[int, Outcome]:
    executor = LocalExecutor(Request(jobs=jobs, gpus=gpus))
    return dict(event for event in executor.run(work, tasks, Interruption()) if event)


def divide(value: int) -> float:
    if value == 7:
        raise RunError(f"seven: {value}")
    if value == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    return 6 / value


def where(folder: Path) -> tuple[int, str]:
    """How many were at work at once, this one among them, and the GPUs it may see."""
    own = folder / str(os.getpid())
    own.touch()
    time.sleep(0.3)
    together = len(list(folder.iterdir()))
    own.unlink()
    return together, os.environ.get("CUDA_VISIBLE_DEVICES", "")


def until_told(folder: Path) -> str:
    """As a training does: what is asked of it, it hears while it trains."""
    with catch_interruption() as interruption:
        (folder / "listening").touch()
        while interruption.signal is None:
            time.sleep(0.01)
    raise Stopped(f"stopped by {signal.Signals(interruption.signal).name}")


def test_tasks_fail_alone() -> None:
    found = outcomes(divide, [1, 0, 7, 9, 3])
    assert (found[0].value, found[4].value) == (6.0, 2.0)
    assert found[1].reason == "ZeroDivisionError: division by zero"
    assert "6 / value" in found[1].traceback
    assert isinstance(found[2].error, RunError)
    assert found[2].reason == "seven: 7"
    assert found[3].reason == "its process was killed by SIGKILL"


def test_no_more_at_once_than_asked_for(tmp_path: Path) -> None:
    assert max(outcome.value[0] for outcome in outcomes(where, [tmp_path] * 5).values()) == 2


def test_asked_to_stop_begins_nothing_more(tmp_path: Path) -> None:
    interruption = Interruption()
    found = {}
    for event in LocalExecutor(Request(jobs=1)).run(until_told, [tmp_path] * 3, interruption):
        if event:
            found[event[0]] = event[1].reason
        elif (tmp_path / "listening").exists():
            interruption.signal = signal.SIGTERM
    assert found == {0: "stopped by SIGINT"}


def test_what_is_left_behind_is_ended(tmp_path: Path) -> None:
    events = LocalExecutor(Request(jobs=1)).run(until_told, [tmp_path], Interruption())
    while not (tmp_path / "listening").exists():
        assert next(events) is None
    events.close()  # type: ignore[attr-defined]


def test_gpus_are_dealt_out_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,7")
    assert deal_gpus(4, 1) == ["4", "5", "7", "4"]
    assert deal_gpus(2, 2) == ["4,5", "7,4"]
    assert deal_gpus(2, 0) == ["", ""]
    with pytest.raises(KattnError, match=r"--gpus 4: this machine has 3 that can be seen"):
        deal_gpus(1, 4)
    assert {outcome.value[1] for outcome in outcomes(where, [tmp_path] * 2, gpus=1).values()} == {"4", "5"}


def test_reasons_are_one_line() -> None:
    assert attempt(int, "3") == Outcome(3)
    assert Outcome(error=KattnError("one\n  two")).reason == "one two"
    assert attempt(int, "x").reason == "ValueError: invalid literal for int() with base 10: 'x'"


def test_a_package_that_is_missing() -> None:
    with pytest.raises(KattnError, match=r"--on x: needs a package that is not installed: pip install 'kattn\[y\]'"):
        optional("kattn_cli.there_is_no_such", "--on x", "y")
