"""Work on a Ray cluster of this machine."""

from __future__ import annotations

import signal
import sys

import pytest

from kattn_cli.errors import KattnError
from kattn_cli.executors.executor import Request
from kattn_cli.executors.ray import RayExecutor
from kattn_cli.training.interrupt import Interruption


def test_tasks_fail_alone_and_sigterm_stays_ours() -> None:
    pytest.importorskip("ray")
    before = signal.getsignal(signal.SIGTERM)
    events = RayExecutor(Request(jobs=2, address="local")).run(int, ["1", "x", "3"], Interruption())
    found = dict(event for event in events if event)
    assert signal.getsignal(signal.SIGTERM) == before
    assert (found[0].value, found[2].value) == (1, 3)
    assert found[1].reason == "ValueError: invalid literal for int() with base 10: 'x'"


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        KattnError, match=r"--on ray: needs a package that is not installed: pip install 'kattn\[ray\]'"
    ):
        RayExecutor(Request())
