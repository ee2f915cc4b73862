"""Scores of a classifier's probabilities: how well they are calibrated, and what they single out."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def expected_calibration_error(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer], bins: int = 15
) -> float:
    """Return the mean distance of confidence from accuracy over equal bins of confidence (Guo et al., 2017).

    ``probabilities``: ``(n, classes)``; ``labels``: ``(n,)``; returns a share of 1, nan where one is not a number.
    """
    if not np.isfinite(probabilities).all():
        return math.nan
    confidence = probabilities.max(-1).astype(float)
    correct = probabilities.argmax(-1) == labels
    index = np.clip(np.ceil(confidence * bins), 1, bins).astype(int) - 1
    gap = np.bincount(index, weights=confidence - correct, minlength=bins)
    return float(np.abs(gap).sum() / len(labels))


def aupr(positives: NDArray[np.floating], negatives: NDArray[np.floating]) -> float:
    """Return the area under the precision-recall curve of scores that are high for positives; a share of 1.

    Average precision, Σ (Rₙ − Rₙ₋₁) Pₙ over falling thresholds, without interpolation. Scores without skill come to
    the share of positives. ``positives``: ``(n,)``; ``negatives``: ``(m,)``; nan where either is empty or one is not a
    number.
    """
    scores = np.concatenate([positives, negatives])
    if not (len(positives) and len(negatives) and np.isfinite(scores).all()):
        return math.nan
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(np.arange(len(scores)) < len(positives), scores))
