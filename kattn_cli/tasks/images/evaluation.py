"""``kattn eval``: accuracy, loss and calibration, of clean images, of corrupted ones, and of other folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from rich.progress import Progress

from kattn_cli.console import progress_bar
from kattn_cli.data.images import ImageData
from kattn_cli.data.loaded import LoadedData
from kattn_cli.device import device_name
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.bits import CORRECT, packed
from kattn_cli.runs.csv_rows import replace_rows
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run
from kattn_cli.statistics.intervals import wilson_interval
from kattn_cli.tasks.expert_loads import note_evaluation
from kattn_cli.tasks.task import Asked
from kattn_cli.training.evaluate import Outputs, outputs_on
from kattn_cli.training.opened import OpenImageRun, OpenRun, as_image_data, as_image_run

EVAL_CSV = "eval.csv"


class Subject:
    """A run under evaluation: its model, its images, and what it says of them clean."""

    def __init__(self, run: Run, asked: Asked) -> None:
        self.opened: OpenRun = asked.opener.open(run)
        self.run, self.asked = run, asked
        self.split: Any = self.opened.data.splits[asked.split].first(asked.limit).to(asked.device)
        self.weights = self.opened.weights

    def images(self, for_: str) -> OpenImageRun:
        """Return the run, if it classifies images, which ``for_`` needs.

        Raises:
            RunError: if it reads anything else.
        """
        return as_image_run(self.opened, for_)

    @cached_property
    def clean(self) -> Outputs:
        """What the model says of the split as it is."""
        return outputs_on(self.opened.model, self.split)

    @cached_property
    def clean_row(self) -> dict[str, Any]:
        """The row of the clean images."""
        return self.row(self.clean)

    @property
    def split_name(self) -> str:
        """What the split is called in tables: that which the best epoch was chosen by may be the test set."""
        chosen_on = self.opened.data.chosen_on
        return chosen_on if self.asked.split == "validation" else self.asked.split

    def row(self, outputs: Outputs, classes: int | None = None, **columns: Any) -> dict[str, Any]:
        """Return one row of ``eval.csv``; ``classes``: how many classes there were to choose from, by default all."""
        measured = outputs.measures()
        low, high = wilson_interval(measured.top1 / 100 * measured.images, measured.images)
        where = {"split": self.split_name, "corruption": "", "severity": 0, "parameters": "", "seed": ""}
        return {
            **where,
            "images": measured.images,
            "classes": classes or self.opened.data.classes,
            "top1": measured.top1,
            "top1_low": 100 * low,
            "top1_high": 100 * high,
            "top5": measured.top5,
            "loss": measured.loss,
            "ece": measured.ece,
            "aupr": "",
            "aupr_chance": "",
            "checkpoint": self.opened.checkpoint,
            "step": self.opened.step,
            "weights": self.weights,
            "textures": "",
            "path": "",
            "run_as": self.opened.run_as,
            **columns,
            CORRECT: packed(outputs.right()),
        }

    def write(self, row: dict[str, Any], measured: Sequence[str] = ()) -> None:
        """Put a row into the run's ``eval.csv`` in place of an earlier one of the same measurement.

        Args:
            measured: columns that hold what was found, though they tell other measurements apart.
        """
        replace_rows(self.run.folder / EVAL_CSV, [row], measured)


Step = Callable[[], str]
"""Measures and writes one row, and returns what to say of it."""


class Part(Protocol):
    """Something to measure of a run besides its clean images."""

    def steps(self, subject: Subject) -> list[Step]:
        """Return what is left to do."""


@dataclass(frozen=True)
class Evaluated:
    """A run after evaluation; ``clean``: the row of its clean images; ``experts``: what is to be said of their load."""

    run: Run
    recipe: Recipe
    data: LoadedData
    clean: dict[str, Any]
    experts: str = ""

    @property
    def image_data(self) -> ImageData:
        """Of a run that classifies images."""
        return as_image_data(self.data, str(self.run.folder), "an error under corruption")


def evaluate_runs(runs: Sequence[Run], asked: Asked, parts: Sequence[Part] = ()) -> list[Evaluated]:
    """Evaluate each run; rows go to each run's ``eval.csv`` as they are measured."""
    done = []
    with progress_bar("row" if parts else "run") as bar:
        task = None if parts else bar.add_task("eval", total=len(runs), count="", note="")
        for number, run in enumerate(runs, 1):
            record = provenance(device_name(asked.device))
            subject = Subject(run, asked)
            try:
                subject.write(subject.clean_row)
                experts = "" if asked.run_as else note_evaluation(subject.opened, subject.split_name, asked.limit)
                done.append(Evaluated(run, subject.opened.recipe, subject.opened.data, subject.clean_row, experts))
                if task is None:
                    _work_off(
                        bar, f"{run.label}/{run.folder.name}", [step for part in parts for step in part.steps(subject)]
                    )
                else:
                    bar.update(task, completed=number, count=f"{number}/{len(runs)}", note=run.label)
            finally:
                run.add_measurement(record)
    return done


def _work_off(bar: Progress, what: str, steps: Sequence[Step]) -> None:
    if not steps:
        return
    task = bar.add_task(what, total=len(steps), count="", note="")
    for number, step in enumerate(steps, 1):
        bar.update(task, completed=number, count=f"{number}/{len(steps)}", note=step())
