"""Shares, drops and evenness of a layer's experts, by hand."""

from __future__ import annotations

import math

import pytest

from kattn_cli.models.experts import ExpertLoad


def test_shares_by_hand() -> None:
    load = ExpertLoad(asked=[6, 2, 0], dropped=[3, 0, 0], probability=[0.5, 0.3, 0.2])
    assert load.shares == [0.75, 0.25, 0]
    assert load.dropped_shares == [0.5, 0, 0]
    assert load.dropped_share == 3 / 8
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert load.evenness == pytest.approx(entropy / math.log(3))


def test_evenness_of_the_extremes() -> None:
    assert ExpertLoad([5] * 4, [0] * 4, [0.25] * 4).evenness == pytest.approx(1)
    assert ExpertLoad([9, 0], [0, 0], [1, 0]).evenness == 0
    assert ExpertLoad([9], [0], [1]).evenness == 1


def test_nothing_asked() -> None:
    load = ExpertLoad([0, 0], [0, 0], [0.5, 0.5])
    assert load.shares == load.dropped_shares == [0, 0]
    assert load.dropped_share == load.evenness == 0
