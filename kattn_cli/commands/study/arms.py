"""The arms of a study as points of sweeps: which runs there are, and how those that are missing are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from kattn_cli.commands.sweep.record import Record
from kattn_cli.commands.sweep.sweep import Settings, plan, sweep
from kattn_cli.errors import KattnError, RecipeError
from kattn_cli.executors.executor import Executor
from kattn_cli.recipe.faults import all_of
from kattn_cli.runs.run import Run
from kattn_cli.studies.study import Study


@dataclass(frozen=True)
class ArmRuns:
    """The points of one arm with runs of its own, and what there is of them."""

    arm: str
    overrides: tuple[str, ...]
    record: Record

    @property
    def finished(self) -> Mapping[int, Run]:
        """Return its finished runs by seed."""
        states = self.record.states
        return {state.point.recipe.seed: state.run for state in states if state.status == "finished" and state.run}


def arms_of(study: Study, results: Path, *, data: bool = True) -> list[ArmRuns]:
    """Return the arms that have runs of their own.

    Args:
        data: whether the files of their data sets must be there.

    Raises:
        RecipeError: naming every fault of every recipe.
        KattnError: if an arm means several recipes, or two arms have runs of one name.
    """
    found, errors = list[ArmRuns](), list[RecipeError]()
    for name, seeds in study.trained().items():
        arm = study.arms[name]
        try:
            records = plan([arm.reference], arm.overrides, [], seeds, results, data=data)
        except RecipeError as error:
            errors.append(error)
            continue
        if len(records) != 1:
            raise KattnError(f"arm {name}: {arm.reference} means {len(records)} recipes, and an arm is one of them")
        found.append(ArmRuns(name, arm.overrides, records[0]))
    if errors:
        raise all_of(errors)
    _require_names_of_their_own(found)
    return found


def train(arms: Sequence[ArmRuns], executor: Executor, device: str, threads: int, command: str) -> None:
    """Train every run that is missing, as ``kattn sweep`` does.

    Raises:
        Stopped: after Ctrl-C or SIGTERM, with what was kept and the command that goes on.
        KattnError: if some cannot be trained, when all others are done.
    """
    left = [arm for arm in arms if any(not state.settled for state in arm.record.states)]
    for overrides, together in groupby(left, key=lambda arm: arm.overrides):
        records = [arm.record for arm in together]
        sweep(records, executor, Settings(overrides, device, threads, command))


def _require_names_of_their_own(arms: Sequence[ArmRuns]) -> None:
    folders: dict[Path, str] = {}
    for one in arms:
        if other := folders.get(one.record.folder):
            raise KattnError(
                f"arms {other} and {one.arm}: both have the runs of {one.record.folder}; give one of the recipes a "
                "name of its own: name=…"
            )
        folders[one.record.folder] = one.arm
