"""Means over inputs by hand."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.audit.view import mean_and_deviation


def test_mean_and_deviation_over_the_first_axis() -> None:
    mean, deviation = mean_and_deviation(torch.tensor([[2.0, 1.0], [4.0, 1.0]]))
    assert mean.tolist() == [3, 1]
    assert deviation.tolist() == pytest.approx([2**0.5, 0])


def test_a_single_input_deviates_by_nothing() -> None:
    assert mean_and_deviation(torch.tensor([[5.0]]))[1].tolist() == [0]
