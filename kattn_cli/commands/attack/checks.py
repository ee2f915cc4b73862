"""Whether numbers under attack can be believed: is it the model that withstands, or the attack that fails?

The questions are those of Carlini et al. (2019), "On evaluating adversarial robustness", and of Athalye et al. (2018)
on masked gradients. Each verdict comes with the figures that it rests on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd
import torch

from kattn_cli.attacks import ATTACKS, AttackSettings
from kattn_cli.attacks.threat_model import UNITS
from kattn_cli.commands.attack.measure import Target
from kattn_cli.console import console
from kattn_cli.runs.csv_rows import read_rows, replace_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.attack_names import SHARE, epsilon_text
from kattn_cli.tables.frames import attack_frame
from kattn_cli.tables.measurements import settings
from kattn_cli.training.seed import Stream, generator

CHECKS_CSV = "attack_checks.csv"
IMAGES = 64
STARTS = 5
UNBOUNDED = AttackSettings("linf", epsilon=1.0, steps=50, relative_step=0.1)
EPSILON = 4 / 255
"""Where PGD's random starts are compared, in pixels, unless PGD was measured at other budgets: then at their median."""
TOLERANCE = 1.0
"""Points of accuracy by which an order may be missed, on the images of one run."""
HOW = ("attack", "steps", "restarts", SHARE)
"""What two attacks that are ordered at one budget may differ in; in nothing else."""
REACHES_ZERO = "unbounded PGD reaches 0"
CONVERGE = "restarts converge"
HOLDS = "holds"


@dataclass(frozen=True)
class Check:
    """``holds`` is None where what it needs was not measured."""

    name: str
    holds: bool | None
    evidence: str

    @property
    def word(self) -> str:
        """Return ``holds``, ``does not hold`` or ``not measured``."""
        return {True: HOLDS, False: "does not hold", None: "not measured"}[self.holds]


def verdicts(rows: pd.DataFrame) -> list[Check]:
    """Return the verdicts that follow from the rows of one run (one label and seed)."""
    plain = rows[~rows["targeted"].astype(str).eq("True")]
    return [falls_with_epsilon(plain), iterative_beats_single_step(plain), white_box_beats_black_box(plain)]


def falls_with_epsilon(rows: pd.DataFrame) -> Check:
    """Judge whether accuracy falls, from clean on, as ε grows, for every attack that sees gradients."""
    check = "accuracy falls with ε"
    white_box = [name for name, attack in ATTACKS.items() if attack.white_box]
    worst, shown = -float("inf"), ""
    for _, part in rows[rows["attack"].isin(white_box)].groupby(
        settings(rows, ["epsilon", "name"]), sort=False, dropna=False
    ):
        part = part.sort_values("epsilon")
        if part["epsilon"].nunique() < 2:
            continue
        path = [part["clean_top1"].iloc[0], *part["top1"]]
        rise = max(after - before for before, after in pairwise(path))
        if rise > worst:
            worst, shown = rise, f"{part['attack'].iloc[0]} {' → '.join(f'{value:.1f}' for value in path)}"
    return _check(check, [] if worst == -float("inf") else [worst], shown)


def iterative_beats_single_step(rows: pd.DataFrame) -> Check:
    """Judge whether PGD leaves no more than FGSM at the same ε."""
    return _ordered("PGD ≤ FGSM", rows, ("pgd",), ("fgsm",))


def white_box_beats_black_box(rows: pd.DataFrame) -> Check:
    """Judge whether the strongest attack that sees gradients leaves no more than the strongest that does not.

    Both at the same ε. One that takes a single step does not speak for those that see gradients.
    """
    white_box = [name for name, attack in ATTACKS.items() if attack.white_box and attack.steps != 1]
    black_box = [name for name, attack in ATTACKS.items() if not attack.white_box]
    return _ordered("white-box ≤ black-box", rows, white_box, black_box)


def reaches_zero(top1: float, images: int, steps: int) -> Check:
    """Judge PGD without a bound but the pixels' own, which must leave nothing."""
    evidence = f"pgd ε = 1, {steps} steps: {top1:.1f} % on {images} images"
    return Check(REACHES_ZERO, top1 == 0, evidence)


def restarts_converge(top1: Sequence[float], images: int, epsilon: float) -> Check:
    """Judge the last random start of PGD, which must hardly add to those before: at most one image.

    Args:
        top1: accuracy after 1, 2, … starts.
    """
    path = " → ".join(f"{value:.1f}" for value in top1)
    evidence = f"pgd {epsilon_text(epsilon)}: {path} after 1 to {len(top1)} starts, {images} images"
    return Check(CONVERGE, top1[-2] - top1[-1] <= 100 / images + 1e-9, evidence)


def _ordered(check: str, rows: pd.DataFrame, stronger: Sequence[str], weaker: Sequence[str]) -> Check:
    excess, shown = [], ""
    for _, part in rows.groupby(settings(rows, [*HOW, "name"]), sort=True, dropna=False):
        strong, weak = (part[part["attack"].isin(names)] for names in (stronger, weaker))
        if strong.empty or weak.empty:
            continue
        one, other = strong.loc[strong["top1"].idxmin()], weak.loc[weak["top1"].idxmin()]
        excess.append(one["top1"] - other["top1"])
        if excess[-1] == max(excess):
            budget = epsilon_text(one["epsilon"], one["norm"])
            shown = f"{budget}: {one['attack']} {one['top1']:.1f}, {other['attack']} {other['top1']:.1f}"
    return _check(check, excess, shown)


def _check(check: str, excess: Sequence[float], shown: str) -> Check:
    if not excess:
        return Check(check, None, "not measured")
    return Check(check, max(excess) <= TOLERANCE, shown)


def check_run(target: Target) -> list[Check]:
    """Judge one run's rows, and measure what they cannot tell; rows go to its ``attack_checks.csv``.

    What was measured before on these weights, with this code, seed and ε, is kept.
    """
    rows = attack_frame([target.run])
    mine = rows[(rows["seed"] == target.protocol.seed) & (rows["images"] == target.images)]
    mine = mine[mine["checkpoint"] == target.opened.checkpoint]
    epsilon = _epsilon(mine)
    shared = {
        "epsilon": epsilon,
        "seed": target.protocol.seed,
        "checkpoint": target.opened.checkpoint,
        "weights": target.weights,
        "commit": target.record["commit"],
    }
    known = {} if target.protocol.again else _known(target.run, shared)
    measured = [known.get(REACHES_ZERO) or _unbounded(target), known.get(CONVERGE) or _restarted(target, epsilon)]
    found = [*verdicts(mine), *measured]
    step = {"step": target.opened.step}
    table = [{"check": one.name, "verdict": one.word, "evidence": one.evidence, **shared, **step} for one in found]
    replace_rows(target.run.folder / CHECKS_CSV, table)
    return found


def print_checks(runs: Sequence[Run], found: Sequence[Sequence[Check]]) -> None:
    """Print a line a check: in how many runs it holds, and the evidence where it does not, else that of the first."""
    console.print("\nChecks")
    for every in zip(*found, strict=True):
        judged = [(run, one) for run, one in zip(runs, every, strict=True) if one.holds is not None]
        failed = [(run, one) for run, one in judged if not one.holds]
        mark = "–" if not judged else "✗" if failed else "✓"
        count = f"{len(judged) - len(failed)} of {len(judged)} runs  " if len(found) > 1 and judged else ""
        for run, one in failed or judged[:1] or [(runs[0], every[0])]:
            where = f"{run.label}/{run.seed}: " if len(found) > 1 and judged else ""
            console.print(f"  {mark} {one.name:26} {count}{where}{one.evidence}")


def _epsilon(rows: pd.DataFrame) -> float:
    """Return the median ε of PGD's rows in pixels; those in normalised units are another scale."""
    in_pixels = rows["epsilon_units"] == UNITS["paper"]
    pgd = rows[(rows["attack"] == "pgd") & (rows["norm"] == "linf") & in_pixels]["epsilon"].drop_duplicates()
    return float(pgd.sort_values().iloc[len(pgd) // 2]) if len(pgd) else EPSILON


def _known(run: Run, shared: Mapping[str, Any]) -> dict[str, Check]:
    """Return the verdicts of an earlier command under the same circumstances, by check."""
    wanted = {key: "" if value is None else str(value) for key, value in shared.items()}
    return {
        row["check"]: Check(row["check"], row["verdict"] == HOLDS, row["evidence"])
        for row in read_rows(run.folder / CHECKS_CSV)
        if all(row.get(key) == value for key, value in wanted.items())
    }


def _unbounded(target: Target) -> Check:
    path, images = _left(target, UNBOUNDED, starts=1)
    return reaches_zero(path[0], images, UNBOUNDED.steps)


def _restarted(target: Target, epsilon: float) -> Check:
    pgd = ATTACKS["pgd"]
    path, images = _left(target, AttackSettings("linf", epsilon, pgd.steps, pgd.relative_step), STARTS)
    return restarts_converge(path, images, epsilon)


def _left(target: Target, settings: AttackSettings, starts: int) -> tuple[list[float], int]:
    """Return the accuracy in % after 1, 2, … starts of PGD on the first images, and how many; always in pixels."""
    images, labels = next(iter(target.split.first(IMAGES).batches(IMAGES)))
    standing = torch.ones(len(labels), dtype=torch.bool, device=labels.device)
    path = []
    for start in range(starts):
        draws = generator(target.protocol.seed, Stream.ATTACK, start)
        adversarial = ATTACKS["pgd"].perturb(target.model, images, labels, settings, draws)
        with torch.no_grad():
            standing &= target.model(adversarial).argmax(-1) == labels
        path.append(100 * standing.double().mean().item())
    return path, len(labels)
