"""Work shared among processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest
import torch

from kattn_cli.errors import RunError, Stopped
from kattn_cli.executors.local import in_parallel
from kattn_cli.training.interrupt import catch_interruption


def square(value: int) -> tuple[int, int, int]:
    return value * value, torch.get_num_threads(), os.getpid()


def refuse(value: int) -> int:
    raise RunError(f"refused {value}")


def stop(value: int) -> int:
    raise Stopped(f"stopped {value}")


def tell_the_parent(value: int) -> int:
    """As a training that hears Ctrl-C, which is passed on from the parent's SIGTERM."""
    parent = multiprocessing.parent_process()
    assert parent
    assert parent.pid
    with catch_interruption() as interruption:
        os.kill(parent.pid, signal.SIGTERM)
        while interruption.signal is None:
            time.sleep(0.01)
    raise Stopped(f"kept {value}")


def test_sigterm_is_passed_on_as_ctrl_c_is() -> None:
    with pytest.raises(Stopped) as caught:
        list(in_parallel(tell_the_parent, [(value,) for value in range(3)], 1))
    assert str(caught.value) == "kept 0\n2 runs were not begun; the same command with --resume begins them."
    assert caught.value.code == 128 + signal.SIGTERM


def test_results_of_all_tasks_from_other_processes() -> None:
    results = list(in_parallel(square, [(value,) for value in range(5)], 2))
    assert sorted(value for value, _, _ in results) == [0, 1, 4, 9, 16]
    assert all(threads == max(1, torch.get_num_threads() // 2) for _, threads, _ in results)
    assert os.getpid() not in {pid for _, _, pid in results}


def test_a_failure_is_passed_on() -> None:
    with pytest.raises(RunError, match="refused 3"):
        list(in_parallel(refuse, [(3,)], 1))


def test_what_the_stopped_ones_say_is_gathered() -> None:
    with pytest.raises(Stopped) as caught:
        list(in_parallel(stop, [(value,) for value in range(2)], 1))
    assert "stopped 0" in str(caught.value)
    assert caught.value.code == 130
