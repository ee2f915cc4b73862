"""How numbers are written in tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pandas as pd

PERPLEXITY = "perplexity"
LOWER_IS_BETTER = (PERPLEXITY, "mean error")
"""What such quantities' names begin with."""
KINDS = {
    "mean error": "mean error in %",
    PERPLEXITY: PERPLEXITY,
    "mean IoU": "mean IoU in %",
    "normalised score": "normalised score",
    "return": "return",
}
"""By what their names begin with; all others are accuracies."""


def lower_is_better(quantity: str) -> bool:
    """Of quantities of a comparison."""
    return quantity.startswith(LOWER_IS_BETTER)


def kind(quantity: str) -> str:
    """What a quantity of a comparison is one of, with its unit: ``mean IoU, corrupted`` of ``mean IoU in %``."""
    return next((told for begin, told in KINDS.items() if quantity.startswith(begin)), "top-1 in %")


def digits(quantity: str) -> int:
    """Decimals of a quantity: 2 of perplexity, 1 of what is in %."""
    return 2 if quantity.startswith(PERPLEXITY) else 1


def signed(value: float, decimals: int) -> str:
    """``+0.3``, ``−0.3``, ``0.0``; empty for nan."""
    if math.isnan(value):
        return ""
    text = f"{abs(value):.{decimals}f}"
    return text if not float(text) else f"{'+' if value > 0 else '−'}{text}"


def interval(low: float, high: float, decimals: int) -> str:
    """``−0.4 … +2.0``; empty for nan."""
    return "" if math.isnan(low) else f"{signed(low, decimals)} … {signed(high, decimals)}"


def p_value(p: float) -> str:
    """Three decimals, ``< 0.001`` below; empty for nan."""
    if math.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def short(value: float) -> str:
    """Four digits, with separators of thousands; empty for nan."""
    if pd.isna(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def counted(count: int, noun: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def listed(words: Iterable[str], most: int | None = None) -> str:
    """``a, b and c``; beyond ``most``, ``a, b and 7 more``."""
    known: Sequence[str] = list(words)
    if most is not None and len(known) > most:
        known = [*known[:most], f"{len(known) - most} more"]
    return known[0] if len(known) == 1 else f"{', '.join(known[:-1])} and {known[-1]}" if known else ""
