"""The margins within which two models count as equivalent, one for each measure, written down before they are judged.

They are ours: no paper states any. Pages list them, and a claim or a study may name another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kattn_cli.tables.measures import LOSS, MEAN_ERROR, MEAN_IOU, PERPLEXITY, RETURN, SCORE, measure_of


@dataclass(frozen=True)
class Margin:
    """``value``: above 0, in ``unit``; ``of``: what it is a margin of."""

    value: float
    unit: str
    of: str

    def __str__(self) -> str:
        """Return ``3 points under attack``."""
        unit = self.unit.replace("points", "point").replace("powers", "power") if self.value == 1 else self.unit
        return " ".join(part for part in (f"{self.value:g}", unit, self.of) if part)


CLEAN = Margin(1, "points", "of clean accuracy")
ATTACKED = Margin(3, "points", "under attack")
CORRUPTED = Margin(1, "points", "under corruption")
MCE = Margin(2, "points", "of mCE")
OUT_OF_DISTRIBUTION = Margin(1, "points", "of AUPR")
SEGMENTED = Margin(1, "points", "of mean IoU or mean accuracy")
PERPLEXED = Margin(2, "%", "of perplexity")
LOST = Margin(0.02, "nats", "of loss")
SCORED = Margin(3, "points", "of the normalised score")
RANKED = Margin(1, "% of N", "of effective rank")
FOREGROUND = Margin(0.02, "", "of area under the ROC curve")
TENFOLD = Margin(1, "powers of ten", "of |J|")
OTHER = Margin(0.01, "", "of any other measure")

STATED = (
    *(CLEAN, CORRUPTED, ATTACKED, MCE, OUT_OF_DISTRIBUTION, SEGMENTED),
    *(PERPLEXED, LOST, SCORED, RANKED, FOREGROUND, TENFOLD),
)
"""Those that claims of the papers are judged by, in the order in which pages list them."""
OF_MEASURES = {
    MEAN_IOU: SEGMENTED,
    LOSS: LOST,
    MEAN_ERROR: CORRUPTED,
    PERPLEXITY: PERPLEXED,
    SCORE: SCORED,
    RETURN: OTHER,
}


def in_percent(value: float) -> float:
    """Return 100 times the logarithm, so that differences read as % and do not depend on the level; nan of 0."""
    return 100 * math.log(value) if value > 0 else math.nan


def margin_of(quantity: str) -> Margin:
    """Return the margin of a quantity of a summary of runs: ``clean``, ``pgd 4/255`` or ``perplexity of ptb``."""
    measure = measure_of(quantity)
    if measure in OF_MEASURES:
        return OF_MEASURES[measure]
    if quantity.startswith("best "):
        return CLEAN if measure.unit == "%" else OTHER
    return CLEAN if quantity.startswith("clean") else ATTACKED
