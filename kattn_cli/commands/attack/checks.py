"""The sanity of an attack, measured and told: is it the model that withstands, or the attack that fails?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kattn_cli.attacks import ATTACKS
from kattn_cli.attacks.checks import CONVERGE, HOLDS, REACHES_ZERO, Verdict, reaches_zero, restarts_converge, verdicts
from kattn_cli.attacks.settings import Settings
from kattn_cli.commands.attack.target import Target
from kattn_cli.console import console
from kattn_cli.runs.csv_rows import read_rows, replace_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import attack_frame
from kattn_cli.training.seed import Stream, generator

CHECKS_CSV = "attack_checks.csv"
KEY = ("check", "checkpoint")
IMAGES = 64
STARTS = 5
UNBOUNDED = Settings("linf", epsilon=1.0, steps=50, relative_step=0.1)
EPSILON = 4 / 255
"""Where PGD's random starts are compared, unless PGD was measured at other budgets: then at their median."""


def check_run(target: Target) -> list[Verdict]:
    """Judge one run's rows, and measure what they cannot tell; rows go to its ``attack_checks.csv``.

    What was measured before on these weights, with this code, seed and ε, is kept.
    """
    rows = attack_frame([target.run])
    mine = rows[(rows["seed"] == target.protocol.seed) & (rows["images"] == target.images)]
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
    table = [{"check": one.check, "verdict": one.word, "evidence": one.evidence, **shared} for one in found]
    replace_rows(target.run.folder / CHECKS_CSV, table, KEY)
    return found


def print_checks(runs: Sequence[Run], found: Sequence[Sequence[Verdict]]) -> None:
    """One line a check: in how many runs it holds, and the evidence of those where it does not, else of the first."""
    console.print("\nChecks")
    for every in zip(*found, strict=True):
        judged = [(run, one) for run, one in zip(runs, every, strict=True) if one.holds is not None]
        failed = [(run, one) for run, one in judged if not one.holds]
        mark = "–" if not judged else "✗" if failed else "✓"
        count = f"{len(judged) - len(failed)} of {len(judged)} runs  " if len(found) > 1 and judged else ""
        for run, one in failed or judged[:1] or [(runs[0], every[0])]:
            where = f"{run.label}/{run.seed}: " if len(found) > 1 and judged else ""
            console.print(f"  {mark} {one.check:26} {count}{where}{one.evidence}", markup=False)


def _epsilon(rows: Any) -> float:
    pgd = rows[(rows["attack"] == "pgd") & (rows["norm"] == "linf")]["epsilon"]
    return float(pgd.sort_values().iloc[len(pgd) // 2]) if len(pgd) else EPSILON


def _known(run: Run, shared: Mapping[str, Any]) -> dict[str, Verdict]:
    """The verdicts of an earlier command under the same circumstances, by check."""
    wanted = {key: "" if value is None else str(value) for key, value in shared.items()}
    return {
        row["check"]: Verdict(row["check"], row["verdict"] == HOLDS, row["evidence"])
        for row in read_rows(run.folder / CHECKS_CSV)
        if all(row.get(key) == value for key, value in wanted.items())
    }


def _unbounded(target: Target) -> Verdict:
    path, images = _left(target, UNBOUNDED, starts=1)
    return reaches_zero(path[0], images, UNBOUNDED.steps)


def _restarted(target: Target, epsilon: float) -> Verdict:
    pgd = ATTACKS["pgd"]
    path, images = _left(target, Settings("linf", epsilon, pgd.steps, pgd.relative_step), STARTS)
    return restarts_converge(path, images, epsilon)


def _left(target: Target, settings: Settings, starts: int) -> tuple[list[float], int]:
    """Accuracy in % on the first images after 1, 2, … random starts of PGD, and how many images; always in pixels."""
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
