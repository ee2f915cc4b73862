"""What is still to be measured of a study's runs, and the subcommands that do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kattn_cli.commands.subcommand import call_all
from kattn_cli.console import console, progress_bar
from kattn_cli.errors import KattnError
from kattn_cli.runs.run import Run
from kattn_cli.studies.evidence import Runs, missing
from kattn_cli.studies.study import Study


@dataclass(frozen=True)
class Measurement:
    """One subcommand on the runs of one arm; ``measures``: all that it measures."""

    arm: str
    measures: tuple[str, ...]
    runs: tuple[Run, ...]
    command: tuple[str, ...]

    def arguments(self, results: Path, device: str) -> list[str]:
        """Return what is typed after ``kattn``."""
        verb, *options = self.command
        folders = [str(run.folder) for run in self.runs]
        return [verb, *folders, *options, "--results", str(results), "--device", device, "--quiet"]


def left_to_measure(study: Study, runs: Runs) -> list[Measurement]:
    """Return what no table has yet; measures that one subcommand takes are taken at once.

    Raises:
        KattnError: if a training should have left a measure and has not.
    """
    wanted: dict[tuple[str, tuple[str, ...]], tuple[list[str], dict[Path, Run]]] = {}
    for name, measure in study.measures.items():
        for arm, left in missing(study, runs, name).items():
            if not left:
                continue
            if not measure.command:
                raise KattnError(f"measure {name}: {left[0].folder}/{measure.file} has no row that fits it")
            run_as = study.arms[arm].run_as
            command = (*measure.command, *(("--run-as", run_as) if run_as else ()))
            measures, folders = wanted.setdefault((arm, command), ([], {}))
            measures.append(name)
            folders.update({run.folder: run for run in left})
    return [
        Measurement(arm, tuple(measures), tuple(folders.values()), command)
        for (arm, command), (measures, folders) in wanted.items()
    ]


def measure(study: Study, runs: Runs, results: Path, device: str, jobs: int) -> None:
    """Take every measure that is missing, ``jobs`` subcommands at once; what was begun goes on.

    Raises:
        KattnError: if one fails, or leaves no row that fits its measure.
        Stopped: after Ctrl-C.
    """
    left = [part for one in left_to_measure(study, runs) for part in _parts(one, jobs)]
    if not left:
        return
    with progress_bar("measurement") as bar:
        task = bar.add_task(study.name, total=len(left), count=f"0/{len(left)}", note=_words(left[0]))
        commands = [one.arguments(results, device) for one in left]
        for done, number in enumerate(call_all(commands, jobs), 1):
            bar.update(task, completed=done, count=f"{done}/{len(left)}", note=_words(left[number]))
            if not console.is_terminal:
                console.print(f"measured {done}/{len(left)}: {_words(left[number])}")
    for one in left_to_measure(study, runs):
        name = one.measures[0]
        file = study.measures[name].file
        raise KattnError(
            f"measure {name}: kattn {' '.join(one.command)} leaves no row in {one.runs[0].folder}/{file} that fits its "
            "where"
        )


def _parts(measurement: Measurement, jobs: int) -> Iterator[Measurement]:
    """Yield parts of a measurement that keep ``jobs`` processes at work."""
    size = -(-len(measurement.runs) // max(1, jobs))
    for first in range(0, len(measurement.runs), size):
        runs: Sequence[Run] = measurement.runs[first : first + size]
        yield Measurement(measurement.arm, measurement.measures, tuple(runs), measurement.command)


def _words(one: Measurement) -> str:
    return f"{', '.join(one.measures)} of {one.arm}"
