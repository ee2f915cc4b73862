"""Margins: which quantity has which, and how they are written."""

from __future__ import annotations

import math

import pytest

from kattn_cli.tables.margins import ATTACKED, CLEAN, CORRUPTED, PERPLEXED, SEGMENTED, STATED, in_percent, margin_of


def test_each_quantity_has_the_margin_of_its_measure() -> None:
    expected = {
        "clean": CLEAN,
        "clean (200 images)": CLEAN,
        "pgd 4/255": ATTACKED,
        "mean error (500 images)": CORRUPTED,
        "mean IoU, corrupted": SEGMENTED,
        "perplexity of ptb": PERPLEXED,
    }
    assert {quantity: margin_of(quantity) for quantity in expected} == expected
    assert [margin.value for margin in (CLEAN, CORRUPTED, ATTACKED, PERPLEXED)] == [1, 1, 3, 2]


def test_they_read_as_words() -> None:
    words = [str(margin) for margin in STATED]
    assert words[:3] == ["1 point of clean accuracy", "1 point under corruption", "3 points under attack"]
    assert "2 % of perplexity" in words
    assert words[-1] == "1 power of ten of |J|"


def test_percent_is_of_the_logarithm() -> None:
    assert in_percent(10.2) - in_percent(10) == pytest.approx(100 * math.log(1.02))
    assert math.isnan(in_percent(0.0))
