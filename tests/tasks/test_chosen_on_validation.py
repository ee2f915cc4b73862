"""The central promise, for every kind of data: the best epoch is chosen on validation, and training sees no test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_tasks import write_tiny
from torch import Tensor

from kattn_cli.commands.train.train import train
from kattn_cli.errors import RecipeError
from kattn_cli.experiment import recipes
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.weights import kept_name, weights_path
from kattn_cli.tables.measures import LOSS
from kattn_cli.tasks import TASKS, load_data
from kattn_cli.tasks.task import AnyTask
from kattn_cli.training.objective import Objective

CPU = torch.device("cpu")
CHOSEN, OTHER = (1.0, 3.0, 2.0), (1.0, 2.0, 3.0)
"""The merits of three epochs by the measure that chooses, of which the second is best, and by all others: the third."""


@dataclass(frozen=True)
class Scripted:
    """What the evaluation of an epoch is said to have found."""

    loss: float
    measures: dict[str, float]
    auxiliary_loss: float = 0.0


class Untouchable:
    """A split that nothing may be asked of."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the test split was touched in training: .{name}")

    def __len__(self) -> int:
        raise AssertionError("the test split was touched in training: its length")

    def __getitem__(self, index: object) -> Any:
        raise AssertionError("the test split was touched in training: a sample")

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("the test split was touched in training: its samples")


def scripted(objective: Objective, epoch: int) -> Scripted:
    """Return what the ``epoch``-th evaluation finds: each measure apart from the one that chooses prefers another."""
    name = objective.measure.name
    values = dict.fromkeys(objective.measures([1.0] * objective.kept, 1.0), OTHER[epoch])
    if name != LOSS.name:
        return Scripted(10 - OTHER[epoch], {**values, name: CHOSEN[epoch]})
    return Scripted(10 - CHOSEN[epoch], values)


def samples(split: Any) -> set[bytes]:
    """Return the inputs of a split, one by one."""
    return {b"".join(one.numpy().tobytes() for one in tensors_in(inputs)) for inputs, _ in split.batches(1)}


def tensors_in(inputs: Any) -> Iterator[Tensor]:
    if isinstance(inputs, Tensor):
        yield inputs.contiguous()
    elif inputs is not None:
        for part in inputs:
            yield from tensors_in(part)


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AnyTask:
    """Each kind of data, with a recipe ``tiny.yaml`` in the test's folder."""
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "shared"))
    if request.param == "control":
        pytest.importorskip("h5py")
    write_tiny(request.param, tmp_path)
    return TASKS[request.param]


def test_the_split_to_choose_on_is_held_out_of_training_and_not_of_the_test(task: AnyTask, tmp_path: Path) -> None:
    data = load_data(recipes.load(tmp_path / "tiny.yaml").data)
    found = {name: samples(split) for name, split in data.splits.items()}
    assert all(found.values())
    assert [len(found[name]) for name in found] == [len(split) for split in data.splits.values()]
    assert data.chosen_on == "validation"
    assert not found["validation"] & found["train"]
    # A policy's test is to act in its environment: of trajectories there is no test split but in name.
    if task.reads != "trajectories":
        assert not found["validation"] & found["test"]
        assert not found["train"] & found["test"]


def test_what_is_chosen_on_the_test_split_says_so(task: AnyTask, tmp_path: Path) -> None:
    if task.reads == "trajectories":
        with pytest.raises(RecipeError, match=r"data\.choose_on +trajectories have no test split"):
            recipes.load(tmp_path / "tiny.yaml", ["data.choose_on=test"])
        return
    data = load_data(recipes.load(tmp_path / "tiny.yaml", ["data.choose_on=test"]).data)
    assert data.chosen_on == "test"
    assert samples(data.splits["validation"]) == samples(data.splits["test"])


def test_the_best_weights_are_those_of_the_epoch_that_validation_chooses(
    task: AnyTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the recipe to ``best.safetensors``, with a test split that nothing may be asked of."""
    load, objective_of = task.load, task.objective
    validation = samples(load_data(recipes.load(tmp_path / "tiny.yaml").data).splits["validation"])
    seen: list[set[bytes]] = []

    def without_test(*given: Any) -> Any:
        data = load(*given)
        return replace(data, splits={**data.splits, "test": Untouchable()})

    def with_script(data: Any) -> Objective:
        objective = objective_of(data)

        def evaluate(model: object, split: Any, gather: object = None) -> Scripted:
            seen.append(samples(split))
            return scripted(objective, len(seen) - 1)

        monkeypatch.setattr(objective, "evaluate", evaluate)
        return objective

    monkeypatch.setattr(task, "load", without_test)
    monkeypatch.setattr(task, "objective", with_script)
    (run,) = train([str(tmp_path / "tiny.yaml")], [], [], results=tmp_path / "results", device=CPU)
    assert seen == [validation] * 3
    best, *each = (load_file(weights_path(run.folder, which)) for which in ("best", *map(kept_name, (1, 2, 3))))
    assert [same(best, one) for one in each] == [False, True, False]
    chosen = scripted(objective_of(load_data(recipes.load(tmp_path / "tiny.yaml").data)), 1)
    manifest = run.manifest
    assert (manifest["best_epoch"], manifest["chosen_on"]) == (2, "validation")
    assert manifest["chosen_by"] == task.measure.name
    found = {name: manifest[f"best_validation_{name}"] for name in ("loss", *chosen.measures)}
    assert found == {"loss": chosen.loss, **chosen.measures}
    assert [row["split"] for row in read_rows(run.folder / "metrics.csv")] == ["train", "validation"] * 3


def same(some: dict[str, Tensor], others: dict[str, Tensor]) -> bool:
    return all(torch.equal(tensor, others[name]) for name, tensor in some.items())
