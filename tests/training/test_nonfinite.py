"""Losses that are not numbers are noticed with their step."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.training.step import NonFinite


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_first_step_is_remembered(value: float) -> None:
    watch = NonFinite(torch.device("cpu"))
    for step, loss in enumerate([1.0, 2.0, value, 1.0, value], 1):
        watch.note(step, torch.tensor(loss))
    assert watch.first() == 3


def test_numbers_are_not_noted() -> None:
    watch = NonFinite(torch.device("cpu"))
    watch.note(1, torch.tensor(1e30))
    assert watch.first() is None
    assert watch.every == 1
