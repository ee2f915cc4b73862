"""The five kinds of data: what data sets, recipes, the command line and a sweep ask of each."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

from kattn_cli.commands.eval.cli import evaluate
from kattn_cli.commands.sweep.record import Record, State
from kattn_cli.commands.sweep.view import ranking
from kattn_cli.data import DATASETS
from kattn_cli.experiment.run import Opener
from kattn_cli.recipe.schema import Recipe
from kattn_cli.recipe.sweep import Point
from kattn_cli.runs.csv_rows import append_rows
from kattn_cli.runs.run import create_run
from kattn_cli.tasks import TASKS, all_data_sets, kinds, task_of, task_reading
from kattn_cli.tasks.task import Asked

DATA = {"images": "digits", "masks": "fashion_canvases", "sequences": "pixels", "text": "text", "control": "d4rl"}
CHOSEN = {
    "images": ("top1", 61.24, "top-1 61.2", "validation top-1, %"),
    "masks": ("mean_iou", 41.26, "mean IoU 41.3", "validation mean IoU, %"),
    "sequences": ("top1", 61.24, "top-1 61.2", "validation top-1, %"),
    "text": ("loss", 1.2345, "loss 1.234", "validation loss"),
    "control": ("loss", 0.0312, "loss 0.031", "validation loss"),
}
"""What an epoch is chosen by, a value, and how a sweep's live view and its ranking show it."""


def recipe_of(name: str) -> Recipe:
    task = TASKS[name]
    section, model = task.section(name=DATA[name]), task.models[0].model_validate({})
    return Recipe.model_validate({"name": name, "data": section, "model": model, "attention": {"name": "softmax"}})


def test_every_data_set_and_run_is_of_one_task() -> None:
    assert {cls.reads for cls in DATASETS.values()} == {task.reads for task in TASKS.values()}
    assert all(issubclass(cls.section, task_reading(cls.reads).section) for cls in DATASETS.values())
    assert all_data_sets() == DATASETS


@pytest.mark.parametrize("name", TASKS)
def test_a_recipe_leads_to_its_task(name: str) -> None:
    task = TASKS[name]
    assert task_of(recipe_of(name)) is task
    assert {kinds()[model] for model in task.models} == {task.section}


def test_every_option_of_a_task_is_one_of_kattn_eval() -> None:
    options, asked = set(inspect.signature(evaluate).parameters), Asked(Opener(torch.device("cpu")))
    for task in TASKS.values():
        assert task.options <= options
        assert [one for one in task.options if not hasattr(asked, one)] == []


@pytest.mark.parametrize("name", TASKS)
def test_a_sweep_shows_and_ranks_by_what_the_task_chooses_by(name: str, tmp_path: Path) -> None:
    measure, value, shown, heading = CHOSEN[name]
    points = [Point(number, {"train.lr": number / 10}, recipe_of(name)) for number in (1, 2)]
    worse = value + (0.5 if measure == "loss" else -0.5)
    record = Record(tmp_path, points)
    for state, found in zip(record.states, (worse, value), strict=True):
        manifest: dict[str, Any] = {"status": "finished", "chosen_by": measure, f"best_validation_{measure}": found}
        state.run, state.status = create_run(tmp_path, name, 0, "", manifest), "finished"
        row = {"epoch": 3, "split": "validation", "loss": 1.0, measure: found}
        append_rows(state.run.folder / "metrics.csv", [{**row, "split": "train"}, row])
        # On the test split the other run is the better one; that must not matter.
        append_rows(state.run.folder / "eval.csv", [{**row, "split": "test", measure: 2 * value - found}])
    last: State = record.states[1]
    assert last.progress() == (3, f"validation {shown}")
    assert last.best == ("validation", measure, value)
    table = ranking(record)
    assert [column.header for column in table.columns] == ["train.lr", heading, "seeds"]
    assert [str(cell) for cell in table.columns[0].cells] == ["0.2", "0.1"]
