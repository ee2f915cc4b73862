"""Measurements of runs, as the commands of the same names make them; rows are kept in the runs' folders, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kattn_cli.api.recorded import recorded
from kattn_cli.api.runs import RESULTS, Run, as_runs
from kattn_cli.attacks import ATTACKS
from kattn_cli.device import resolve_device
from kattn_cli.errors import KattnError, did_you_mean
from kattn_cli.experiment.run import Opener
from kattn_cli.runs.find import figures_folder
from kattn_cli.tables.frames import attack_frame, frame

if TYPE_CHECKING:
    import pandas as pd

Chosen = str | Run | Sequence[str | Run]
"""Runs, or their names."""


@recorded
def evaluate(
    runs: Chosen,
    *,
    results: str | Path = RESULTS,
    device: str = "auto",
    checkpoint: str = "best",
    **options: Any,
) -> pd.DataFrame:
    """Return ``eval.csv`` of the runs: accuracy, loss and calibration, a row for each split and corruption.

    Args:
        runs: or their names.
        checkpoint: ``best``, chosen on validation, or ``last``.
        options: those of ``kattn eval`` by their names: ``corruptions=True``, ``severity=[3]``, ``limit=1000``.

    Raises:
        KattnError: if a run cannot be opened, or an option does not go with it.

    >>> kattn.evaluate("quickstart/rpc", corruption=["fog"], severity=[3])
    """
    from kattn_cli.tasks import evaluate as evaluate_by_task
    from kattn_cli.tasks.task import Asked

    known = [name for name in Asked.__dataclass_fields__ if name not in ("opener", "results")]
    _require_known("evaluate", options, known)
    chosen = as_runs(runs, results)
    opener = Opener(resolve_device(device), checkpoint)
    evaluate_by_task(chosen, Asked(opener, Path(results), **options), list(options))
    return frame(chosen, "eval.csv")


@recorded
def attack(
    runs: Chosen,
    *,
    results: str | Path = RESULTS,
    device: str = "auto",
    checkpoint: str = "best",
    limit: int | None = None,
    seed: int = 0,
    steps: int | None = None,
    **attacks: Sequence[str | float],
) -> pd.DataFrame:
    """Return ``attacks.csv`` of the runs: accuracy on the test set under attack, a row for each attack and ε.

    Args:
        runs: on images, or their names.
        limit: only the first so many test images.
        seed: of what the attacks draw.
        steps: of attacks that take several; by default each attack's own number.
        attacks: by name the budgets of each, as numbers or fractions, in the units of the attack's own norm; nothing
            for its own: ``pgd=["4/255"], square=[]``. See ``kattn list attacks``.

    Raises:
        KattnError: if there is no such attack, with the nearest name, or a run cannot be opened or attacked.

    >>> kattn.attack("quickstart", pgd=["2/255", "4/255"], limit=100)
    """
    from kattn_cli.commands.attack.cli import attack_runs, budget
    from kattn_cli.commands.attack.measure import Protocol
    from kattn_cli.commands.attack.plan import Asked, plan
    from kattn_cli.commands.options import fraction

    _require_known("attack", attacks, list(ATTACKS))
    if not attacks:
        raise KattnError('attack: names no attack; for example pgd=["4/255"]')
    planned = []
    for name, budgets in attacks.items():
        norm = ATTACKS[name].norms[0]
        read = fraction if norm == "linf" else budget
        sizes = [read(str(one)) for one in ([budgets] if isinstance(budgets, str | float | int) else budgets)]
        taken = steps if ATTACKS[name].steps > 1 else None
        planned += plan(Asked([name], budgets={norm: sizes} if sizes else {}, steps=taken))
    chosen = as_runs(runs, results)
    protocol = Protocol(resolve_device(device), seed=seed, limit=limit, checkpoint=checkpoint)
    attack_runs([*chosen], planned, protocol, figures_folder(Path(results), chosen), checks=False)
    return attack_frame(chosen)


@recorded
def spectrum(
    runs: Chosen,
    *,
    results: str | Path = RESULTS,
    device: str = "auto",
    checkpoint: str = "best",
    inputs: int = 64,
) -> pd.DataFrame:
    """Return ``spectrum.csv`` of the runs: the singular values of what each head does, a row for each of them.

    The effective ranks are then in ``run.table("effective_rank.csv")``.

    Args:
        runs: or their names.
        inputs: how many validation images to average over.

    Raises:
        KattnError: if a run cannot be opened.

    >>> kattn.spectrum("quickstart/softmax", inputs=16)
    """
    from kattn_cli.commands.spectrum.measure import spectra_of_runs

    chosen = as_runs(runs, results)
    spectra_of_runs(chosen, device=resolve_device(device), inputs=inputs, checkpoint=checkpoint)
    return frame(chosen, "spectrum.csv")


@recorded
def audit(
    runs: Chosen,
    *,
    only: Sequence[str] = (),
    results: str | Path = RESULTS,
    device: str = "auto",
    checkpoint: str = "last",
    inputs: int = 32,
    permutations: int = 100,
    seed: int = 0,
) -> dict[str, pd.DataFrame]:
    """Return what the papers' equations come to in the runs: item → its table over all runs.

    Args:
        runs: on images, or their names.
        only: items, such as ``projection_error``; by default all.
        inputs: how many validation images to measure on.
        permutations: of tokens, for the null of alignments.
        seed: of all that is drawn.

    Raises:
        KattnError: if there is no such item, with the nearest name, or a run cannot be opened.

    >>> kattn.audit("audit/rpc", only=["projection_error"], inputs=8)
    """
    from kattn_cli.commands.audit.measure import AuditSettings, audit_runs

    chosen = as_runs(runs, results)
    settings = AuditSettings(inputs, seed, permutations, checkpoint)
    written = audit_runs(chosen, settings, resolve_device(device), only)
    items = dict.fromkeys(item for of_run in written.values() for item in of_run)
    return {item: frame(chosen, f"audit/{item}.csv") for item in items}


def _require_known(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise KattnError(
                f"{what}: there is no {name}{did_you_mean(name, known) or '; there are ' + ', '.join(known)}"
            )
