"""What is measured of models: how each measure is called and written, and whether more of it is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Measure:
    """``name``: of its column in the tables of runs. ``label``: what people call it. ``unit``: empty if it has none."""

    name: str
    label: str
    decimals: int
    better: Literal["higher", "lower"]
    unit: str = ""

    @property
    def with_unit(self) -> str:
        """``top-1 in %``, ``perplexity``."""
        return f"{self.label} in {self.unit}" if self.unit else self.label

    @property
    def lower_is_better(self) -> bool:
        return self.better == "lower"


MEASURES: dict[str, Measure] = {
    one.name: one
    for one in (
        Measure("top1", "top-1", 1, "higher", "%"),
        Measure("mean_error", "mean error", 1, "lower", "%"),
        Measure("perplexity", "perplexity", 2, "lower"),
        Measure("mean_iou", "mean IoU", 1, "higher", "%"),
        Measure("normalised_score", "normalised score", 1, "higher"),
        Measure("return", "return", 1, "higher"),
    )
}
"""By name."""


def measure_of(quantity: str) -> Measure:
    """Return the measure of a quantity of a summary: that whose label it begins with, else top-1.

    ``perplexity of ptb`` is perplexity; ``clean`` and ``pgd 4/255`` are top-1.
    """
    return next((one for one in MEASURES.values() if quantity.startswith(one.label)), MEASURES["top1"])
