"""Which rows of a run's tables are one measurement, by their columns alone. Never imports torch.

What identifies a row is every column that holds neither what was measured nor how it came about: two rows that differ
in one of them are two measurements, and a new option of a command is part of the identity by being a column. A column
that a file lacks is empty, or what :data:`DEFAULTS` says; empty equals empty alone.

``checkpoint`` and ``weights`` say what was measured: the name of the weights and the fingerprint of their file (see
:mod:`kattn_cli.runs.weights`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MEASURED = frozenset(
    {
        *("accuracy", "aupr", "aupr_chance", "bits_per_byte", "clean_top1", "correct", "corruption_error"),
        *("dropped", "dropped_share", "ece", "error", "evidence", "gradient_l1_mean", "gradient_l1_median", "iou"),
        *("length", "logit_scale", "loss", "margin_mean", "margin_median", "mean_accuracy", "mean_iou", "mean_l1"),
        *("mean_l2", "mean_linf", "normalised_score", "perplexity", "pixel_accuracy", "pixels", "probability"),
        *("reference_error", "return", "share", "target_rate", "tokens", "top1", "top1_high", "top1_low", "top5"),
        *("unknown", "verdict", "zero_gradient_share"),
    }
)
"""What was measured, and how many there were of what it is a mean over."""
CIRCUMSTANCES = frozenset(
    {
        *("batch_size", "classes", "commit", "folder", "label", "mechanism", "path", "per_image", "run_seed"),
        *("seconds", "step"),
    }
)
"""When, where, how fast and in which portions; which run; and what follows from its data or its weights."""
DEFAULTS: Mapping[str, Any] = {
    "norm": "linf",
    "epsilon_units": "pixels in [0, 1]",
    "steps": 0,
    "restarts": 1,
    "targeted": False,
    "asked": "all",
}
"""What columns hold where a file of an earlier version lacks them."""
OTHERWISE = ("run_as", "gradient_as")
"""Columns that name the recipe whose attention the weights were run as, and that by whose gradient they were attacked;
empty for the run's own."""
WEIGHTS = "weights"
FINGERPRINTS = (WEIGHTS, "textures")
"""Columns of hexadecimal digits, which are no numbers even where they look like one."""


def identity_columns(columns: Iterable[str], but: Sequence[str] = ()) -> list[str]:
    """Return those columns that tell measurements apart, in their order, without those of ``but``."""
    return [one for one in columns if one not in MEASURED and one not in CIRCUMSTANCES and one not in but]


def identity(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what tells a row from others: texts by column; numbers as one text however they were written."""
    usual = {column: _text(column, value) for column, value in DEFAULTS.items()}
    texts = {column: _text(column, row[column]) for column in identity_columns(row)}
    return {column: text for column, text in texts.items() if text and text != usual.get(column)}


def _text(column: str, value: object) -> str:
    text = "" if value is None else str(value)
    if column in FINGERPRINTS or not text:
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    return "" if math.isnan(number) else repr(number)
