"""``kattn attack``: accuracy on the test set under attack, and whether to believe it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kattn_cli.attacks import ATTACKS
from kattn_cli.commands.attack.checks import check_run, print_checks
from kattn_cli.commands.attack.measure import attack_run
from kattn_cli.commands.attack.plan import Planned
from kattn_cli.commands.attack.table import print_attacked
from kattn_cli.commands.attack.target import Protocol, Target
from kattn_cli.console import console, progress_bar
from kattn_cli.figures.robustness import draw_robustness
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import attack_frame


def attack_runs(
    runs: Sequence[Run], planned: Sequence[Planned], protocol: Protocol, folder: Path, *, checks: bool = True
) -> None:
    """Attack each run, then tell: one table, the differences between runs, the checks, and the figure in ``folder``.

    What an interrupted command has measured of a run is kept, to the last finished batch. Checks need an attack that
    sees gradients.

    Raises:
        RecipeError, DataError, CheckpointError, RunError: if a run cannot be opened or attacked.
    """
    judged = []
    checks = checks and any(ATTACKS[one.attack].white_box for one in planned)
    with progress_bar("images") as bar:
        for run in runs:
            target = Target(run, protocol)
            attack_run(target, planned, bar)
            if checks:
                judged.append(check_run(target))
    print_attacked(runs, folder)
    if judged:
        print_checks(runs, judged)
    console.print(draw_robustness(attack_frame(runs), folder))
