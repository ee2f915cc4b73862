"""Corrections for many tests: Holm's within a family, Benjamini and Hochberg's over families."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p_values: ArrayLike) -> NDArray[np.floating]:
    """Return Holm's (1979) step-down adjusted p-values along the last axis, to be held against the family's level.

    The k-th smallest of m is multiplied by m − k + 1; none is below a smaller one's, or above 1. What is nan was not
    compared: it stays nan, and m does not count it.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, axis=-1, kind="stable")  # nan comes last
    ranked = np.take_along_axis(p, order, -1)
    compared = np.isfinite(p).sum(-1, keepdims=True)
    steps = np.fmin((compared - np.arange(p.shape[-1])) * ranked, 1.0)
    steps = np.where(np.isnan(ranked), math.nan, np.maximum.accumulate(steps, axis=-1))
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, steps, -1)
    return adjusted


def shaffer(p_values: ArrayLike) -> NDArray[np.floating]:
    """Return step-down adjusted p-values of questions with several hypotheses each, of which one is true at most.

    That an effect is 0, and that it is outside its margin, cannot both be true. So a p-value is multiplied by the
    number of questions that still have a hypothesis that is not rejected (Shaffer, 1986), not by that of hypotheses.
    With one hypothesis each it is Holm's.

    Args:
        p_values: ``(questions, hypotheses)``; nan where one is not asked.
    """
    p = np.asarray(p_values, dtype=float)
    left = np.isfinite(p).sum(1)
    adjusted, highest = np.full_like(p, math.nan), 0.0
    for place in np.argsort(p, axis=None, kind="stable"):
        question, hypothesis = np.unravel_index(place, p.shape)
        value = float(p[question, hypothesis])
        if np.isnan(value):
            break
        highest = max(highest, min(1.0, float((left > 0).sum()) * value))
        adjusted[question, hypothesis] = highest
        left[question] -= 1
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.floating]:
    """Return Benjamini and Hochberg's (1995) adjusted p-values, to be held against a rate of false discoveries.

    What is nan was not compared: it stays nan and is not counted.
    """
    from scipy.stats import false_discovery_control

    p = np.asarray(p_values, dtype=float)
    known = np.isfinite(p)
    adjusted = np.full_like(p, math.nan)
    if known.any():
        adjusted[known] = false_discovery_control(p[known])
    return adjusted
