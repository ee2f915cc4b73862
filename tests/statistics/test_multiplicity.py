"""Corrections for many tests, against statsmodels and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kattn_cli.statistics.multiplicity import benjamini_hochberg, holm, shaffer

P_VALUES = [0.04, 0.001, 0.2, math.nan, 0.012, 0.012]
KNOWN = [one for one in P_VALUES if not math.isnan(one)]


def known(adjusted: np.ndarray) -> list[float]:
    assert math.isnan(adjusted[3])
    return [float(one) for index, one in enumerate(adjusted) if index != 3]


def test_holm_is_statsmodels() -> None:
    tests = pytest.importorskip("statsmodels.stats.multitest")
    assert known(holm(P_VALUES)) == pytest.approx(list(tests.multipletests(KNOWN, method="holm")[1]))


def test_benjamini_and_hochberg_is_statsmodels() -> None:
    tests = pytest.importorskip("statsmodels.stats.multitest")
    assert known(benjamini_hochberg(P_VALUES)) == pytest.approx(list(tests.multipletests(KNOWN, method="fdr_bh")[1]))


def test_holm_by_hand() -> None:
    assert known(holm(P_VALUES)) == pytest.approx([0.08, 0.005, 0.2, 0.048, 0.048])


def test_one_hypothesis_each_is_holm() -> None:
    assert known(shaffer(np.array(P_VALUES)[:, None])[:, 0]) == pytest.approx(known(holm(P_VALUES)))


def test_a_question_counts_until_all_its_hypotheses_are_rejected() -> None:
    found = shaffer([[0.001, 0.01], [0.02, math.nan], [0.5, 0.03]])
    by_hand = [[3 * 0.001, 3 * 0.01], [2 * 0.02, math.nan], [0.5, 0.04]]  # 1 × 0.03 is not below 2 × 0.02
    assert found == pytest.approx(np.array(by_hand), nan_ok=True)


def test_nothing_measured_is_nothing_corrected() -> None:
    assert np.isnan(benjamini_hochberg([math.nan, math.nan])).all()
    assert np.isnan(shaffer([[math.nan, math.nan]])).all()
