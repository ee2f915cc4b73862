"""Whether numbers under attack can be believed: verdicts, each with the figures that it rests on.

The questions are those of Carlini et al. (2019), "On evaluating adversarial robustness", and of Athalye et al. (2018)
on masked gradients. Never imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from kattn_cli.tables.attack_names import IDENTITY, epsilon_text

TOLERANCE = 1.0
"""Points of accuracy by which an order may be missed, on the images of one run."""
SAME = [column for column in IDENTITY if column != "epsilon"]
BUDGET = ["norm", "epsilon", "epsilon_units", "images", "seed"]
WHITE_BOX = ("pgd", "fgsm", "autoattack")
BLACK_BOX = ("noise", "spsa", "square")
REACHES_ZERO = "unbounded PGD reaches 0"
CONVERGE = "restarts converge"
HOLDS = "holds"


@dataclass(frozen=True)
class Verdict:
    """``holds`` is None where what it needs was not measured."""

    check: str
    holds: bool | None
    evidence: str

    @property
    def word(self) -> str:
        """``holds``, ``does not hold`` or ``not measured``."""
        return {True: HOLDS, False: "does not hold", None: "not measured"}[self.holds]


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """The verdicts that follow from the rows of one run (one label and seed)."""
    plain = rows[~rows["targeted"].astype(str).eq("True")]
    return [falls_with_epsilon(plain), iterative_beats_single_step(plain), white_box_beats_black_box(plain)]


def falls_with_epsilon(rows: pd.DataFrame) -> Verdict:
    """Accuracy falls, from clean on, as ε grows, for every attack that sees gradients."""
    check = "accuracy falls with ε"
    worst, shown = -float("inf"), ""
    for key, part in rows[rows["attack"].isin(WHITE_BOX)].groupby(SAME, sort=False):
        part = part.sort_values("epsilon")
        if part["epsilon"].nunique() < 2:
            continue
        path = [part["clean_top1"].iloc[0], *part["top1"]]
        rise = max(after - before for before, after in pairwise(path))
        if rise > worst:
            worst, shown = rise, f"{key[0]} {' → '.join(f'{value:.1f}' for value in path)}"
    return _verdict(check, [] if worst == -float("inf") else [worst], shown)


def iterative_beats_single_step(rows: pd.DataFrame) -> Verdict:
    """PGD leaves no more than FGSM at the same ε."""
    return _ordered("PGD ≤ FGSM", rows, ("pgd",), ("fgsm",))


def white_box_beats_black_box(rows: pd.DataFrame) -> Verdict:
    """The strongest attack that sees gradients leaves no more than the strongest that does not, at the same ε."""
    return _ordered("white-box ≤ black-box", rows, ("pgd", "autoattack"), BLACK_BOX)


def reaches_zero(top1: float, images: int, steps: int) -> Verdict:
    """PGD without a bound but the pixels' own must leave nothing."""
    evidence = f"pgd ε = 1, {steps} steps: {top1:.1f} % on {images} images"
    return Verdict(REACHES_ZERO, top1 == 0, evidence)


def restarts_converge(top1: Sequence[float], images: int, epsilon: float) -> Verdict:
    """The last random start of PGD must hardly add to those before: at most one image.

    Args:
        top1: accuracy after 1, 2, … starts.
    """
    path = " → ".join(f"{value:.1f}" for value in top1)
    evidence = f"pgd {epsilon_text(epsilon)}: {path} after 1 to {len(top1)} starts, {images} images"
    return Verdict(CONVERGE, top1[-2] - top1[-1] <= 100 / images + 1e-9, evidence)


def _ordered(check: str, rows: pd.DataFrame, stronger: Sequence[str], weaker: Sequence[str]) -> Verdict:
    excess, shown = [], ""
    for _, part in rows.groupby(BUDGET, sort=True):
        strong, weak = (part[part["attack"].isin(names)] for names in (stronger, weaker))
        if strong.empty or weak.empty:
            continue
        one, other = strong.loc[strong["top1"].idxmin()], weak.loc[weak["top1"].idxmin()]
        excess.append(one["top1"] - other["top1"])
        if excess[-1] == max(excess):
            budget = epsilon_text(one["epsilon"], one["norm"])
            shown = f"{budget}: {one['attack']} {one['top1']:.1f}, {other['attack']} {other['top1']:.1f}"
    return _verdict(check, excess, shown)


def _verdict(check: str, excess: Sequence[float], shown: str) -> Verdict:
    if not excess:
        return Verdict(check, None, "not measured")
    return Verdict(check, max(excess) <= TOLERANCE, shown)
