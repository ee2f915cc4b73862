"""Work shared among processes."""

from __future__ import annotations

import os

import pytest
import torch

from kattn_cli.commands.parallel import in_parallel
from kattn_cli.errors import RunError, Stopped


def square(value: int) -> tuple[int, int, int]:
    return value * value, torch.get_num_threads(), os.getpid()


def refuse(value: int) -> int:
    raise RunError(f"refused {value}")


def stop(value: int) -> int:
    raise Stopped(f"stopped {value}")


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
