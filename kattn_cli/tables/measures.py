"""What runs are judged by: the name of each measure in their files, how it is printed, and which way is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kattn_cli.runs.run import Run


@dataclass(frozen=True)
class Measure:
    """``name`` is the column of ``metrics.csv``, ``label`` the word for it; values have so many ``decimals``."""

    name: str
    label: str
    decimals: int
    better: Literal["more", "less"] = "more"
    unit: str = ""

    def formatted(self, value: float) -> str:
        """Return the label and the value, such as ``mean IoU 41.2``."""
        return f"{self.label} {self.number(value)}"

    def number(self, value: float) -> str:
        """Return the value with this measure's decimals."""
        return f"{value:.{self.decimals}f}"

    def merit(self, value: float) -> float:
        """Return a number that is greater for the better value."""
        return value if self.better == "more" else -value

    @property
    def heading(self) -> str:
        """The label with its unit, as a table's head has it."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def in_words(self) -> str:
        """The label with its unit, as a sentence has it: ``top-1 in %``, ``perplexity``."""
        return f"{self.label} in {self.unit}" if self.unit else self.label

    @property
    def lower_is_better(self) -> bool:
        """Whether less of it is better."""
        return self.better == "less"


TOP1 = Measure("top1", "top-1", 1, unit="%")
MEAN_IOU = Measure("mean_iou", "mean IoU", 1, unit="%")
LOSS = Measure("loss", "loss", 3, "less")
MEAN_ERROR = Measure("mean_error", "mean error", 1, "less", unit="%")
PERPLEXITY = Measure("perplexity", "perplexity", 2, "less")
SCORE = Measure("normalised_score", "normalised score", 1)
RETURN = Measure("return", "return", 1)

MEASURES = {one.name: one for one in (TOP1, MEAN_IOU, LOSS, MEAN_ERROR, PERPLEXITY, SCORE, RETURN)}
"""By their names in the tables of runs; manifests name under ``chosen_by`` what the best epoch is chosen by."""


BEST = "best "
"""So begins a quantity of runs of a kind that is not among :data:`MEASURES`: what their best epoch was worth."""


def measure_of(quantity: str) -> Measure:
    """Return the measure of a quantity of a summary of runs: that whose label it begins with, else top-1.

    ``perplexity of ptb`` is perplexity; ``clean`` and ``pgd 4/255`` are top-1; ``best explained`` is what runs of a
    kind that is not among :data:`MEASURES` are chosen by.
    """
    if quantity.startswith(BEST):
        return measure_named(quantity.removeprefix(BEST))
    return next((one for one in MEASURES.values() if quantity.startswith(one.label)), TOP1)


def measure_named(name: str) -> Measure:
    """Return the measure of that name; any other is printed by its name, more being better."""
    return MEASURES.get(name) or Measure(name, name.replace("_", " "), 3)


def chosen_by(manifest: Mapping[str, Any]) -> Measure:
    """Return the measure that the best epoch of a run is chosen by; runs of early versions, of images, do not say."""
    return measure_named(str(manifest.get("chosen_by", TOP1.name)))


def chosen_on(manifest: Mapping[str, Any]) -> str:
    """Return the split that the best epoch of a run is chosen on."""
    return str(manifest.get("chosen_on", "validation"))


def best_value(manifest: Mapping[str, Any]) -> float | None:
    """Return what the best epoch was worth by that measure; None before there is one."""
    value = manifest.get(f"best_validation_{chosen_by(manifest).name}")
    return None if value is None else float(value)


def best_epoch(run: Run) -> str:
    """Return what a run's best epoch was worth, such as ``validation top-1 97.8``; nothing before there is one."""
    manifest = run.manifest
    value = best_value(manifest)
    return "" if value is None else f"{chosen_on(manifest)} {chosen_by(manifest).formatted(value)}"


def last_epoch(rows: Sequence[Mapping[str, str]], measure: Measure) -> tuple[int, str]:
    """Return the last epoch in the ``rows`` of ``metrics.csv``, and what it was worth on the split that chooses."""
    checked = [row for row in rows if row["split"] != "train"]
    if not checked:
        return 0, ""
    last = checked[-1]
    return int(last["epoch"]), f"{last['split']} {measure.formatted(float(last[measure.name]))}"
