"""Scores of probabilities by hand and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from kattn_cli.statistics.scores import aupr, expected_calibration_error


def test_calibration_of_what_is_no_number_is_none() -> None:
    assert math.isnan(expected_calibration_error(np.full((4, 3), np.nan), np.zeros(4, dtype=int)))


def test_calibration_by_hand() -> None:
    """Two answers at 0.8, one right: |2 · 0.8 − 1| / 4; two at 1.0, both right: 0."""
    probabilities = np.array([[0.8, 0.2], [0.8, 0.2], [1.0, 0.0], [0.0, 1.0]])
    assert expected_calibration_error(probabilities, np.array([0, 1, 0, 1])) == pytest.approx(0.15)


def test_what_one_bin_lacks_does_not_make_up_for_another() -> None:
    """Two answers at 0.6, both right, and two at 1.0, both wrong: (2 · 0.4 + 2 · 1) / 4, not |1.2 + 2 − 2| / 4."""
    probabilities = np.array([[0.6, 0.4], [0.6, 0.4], [1.0, 0.0], [0.0, 1.0]])
    assert expected_calibration_error(probabilities, np.array([0, 0, 1, 0])) == pytest.approx(0.7)


def test_calibration_where_nothing_is_known() -> None:
    """Forty classes alike: a confidence of 1/40, in the first bin, of which a quarter comes out right."""
    probabilities = np.full((4, 40), 1 / 40)
    assert expected_calibration_error(probabilities, np.array([0, 1, 2, 3])) == pytest.approx(0.25 - 1 / 40)


def test_aupr_by_hand() -> None:
    """Positives 3 and 1, negatives 2 and 0: precision 1 at recall 1/2, then 2/3 at recall 1."""
    assert aupr(np.array([3.0, 1.0]), np.array([2.0, 0.0])) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_aupr_equals_scikit_learn_with_ties() -> None:
    draw = np.random.default_rng(0)
    positives, negatives = draw.normal(0.5, 1, 60).round(1), draw.normal(0, 1, 300).round(1)
    right = np.r_[np.ones(60), np.zeros(300)]
    expected = average_precision_score(right, np.r_[positives, negatives])
    assert aupr(positives, negatives) == pytest.approx(expected, abs=1e-12)
    assert aupr(np.zeros(60), np.zeros(300)) == pytest.approx(1 / 6)


def test_there_is_no_aupr_of_one_kind_alone_or_of_what_is_no_number() -> None:
    some = np.array([0.5])
    for positives, negatives in ((some, some[:0]), (some[:0], some), (np.array([math.nan]), some)):
        assert math.isnan(aupr(positives, negatives))
