"""One study from its file to its page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kattn_cli.commands.study.arms import ArmRuns, arms_of, train
from kattn_cli.commands.study.measure import left_to_measure, measure
from kattn_cli.console import console
from kattn_cli.errors import KattnError
from kattn_cli.executors.executor import Executor
from kattn_cli.studies.answer import Answer, answer
from kattn_cli.studies.evidence import Runs
from kattn_cli.studies.page import print_verdicts, write_page
from kattn_cli.studies.registration import register
from kattn_cli.studies.study import Study
from kattn_cli.tables.text import counted

STUDIES = "studies"


@dataclass(frozen=True)
class Asked:
    """How a study is run.

    ``command``: what the user typed, which goes on after an interruption; ``train``, ``measure``: whether to train, and
    to measure, what is missing.
    """

    results: Path
    executor: Executor
    threads: int
    jobs: int
    device: str
    command: str
    train: bool = True
    measure: bool = True


def run_study(study: Study, asked: Asked) -> Answer:
    """Train and measure what is missing, judge, and write the page; returns what came out.

    Raises:
        RecipeError, KattnError: if the study cannot be run, or some of it failed, when all else is done.
        Stopped: after Ctrl-C, with the command that goes on.
    """
    folder = folder_of(study, asked.results)
    arms = arms_of(study, asked.results, data=asked.measure)
    wordings = register(study, folder)
    if asked.train:
        train(arms, asked.executor, asked.device, asked.threads, asked.command)
    runs = runs_by_arm(arms)
    if not any(runs.values()):
        raise KattnError(f"{study.name}: nothing is trained yet; without --no-train and --judge-only it is")
    if asked.measure:
        measure(study, runs, asked.results, asked.device, asked.jobs)
    found = answer(study, runs, wordings)
    write_page(found, folder, asked.command)
    print_verdicts(found)
    console.print(f"{folder / 'study.md'}")
    return found


def folder_of(study: Study, results: Path) -> Path:
    """Return where a study's page lies."""
    return results / STUDIES / study.name


def runs_by_arm(arms: list[ArmRuns]) -> Runs:
    """Return the finished runs of each arm, by seed."""
    return {one.arm: one.finished for one in arms}


def print_missing(study: Study, results: Path) -> None:
    """Print which runs are not trained, and which measurements of those that are were not taken."""
    console.print(f"{study.name}: {study.question}")
    arms = arms_of(study, results)
    for one in arms:
        seeds = [state.point.recipe.seed for state in one.record.states if state.status != "finished"]
        state = f"seeds {', '.join(map(str, seeds))} to train" if seeds else "trained"
        console.print(f"  {one.arm}: {counted(len(one.record.states), 'run')}, {state}")
    for left in left_to_measure(study, runs_by_arm(arms)):
        console.print(f"  {', '.join(left.measures)} of {left.arm}: to be measured of {counted(len(left.runs), 'run')}")
