"""Training: the same twice, resumed bit for bit, stopped without loss."""

from __future__ import annotations

import csv
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from kattn_cli.commands.loading import build, data_of
from kattn_cli.commands.recipes import load
from kattn_cli.errors import TrainingError
from kattn_cli.recipe import Recipe, Train
from kattn_cli.training.loop import METRICS, Hooks, Interrupted, Trainer, Update
from kattn_cli.training.optim import build_optimizer, learning_rate
from kattn_cli.training.seed import Stream, derived_seed, generator, seed_torch

TIMES = ("images_per_second", "seconds")


class Recorder:
    """Keeps what the loop hands out; stops it by a real signal after ``stop_after`` steps."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.saved: list[str] = []
        self.state: dict[str, Any] = {}
        self.stop_after = stop_after

    def hooks(self) -> Hooks:
        return Hooks(self.on_step, self.rows.extend, self.save)

    def on_step(self, update: Update) -> None:
        if update.step == self.stop_after:
            signal.raise_signal(signal.SIGINT)

    def save(self, which: str, state: dict[str, Any]) -> None:
        self.saved.append(which)
        if which == "last":
            copied = {key: value.clone() for key, value in state["model"].items()}
            torch.save({**state, "model": copied}, self.path)
            self.state = torch.load(self.path, weights_only=True)

    path = Path()


@pytest.fixture
def recipe(tiny_recipe: Path) -> Recipe:
    return load(tiny_recipe, ["train.crop_padding=1", "model.drop_path=0.2", "attention.attn_drop=0.1"])


def trainer(recipe: Recipe, recorder: Recorder, tmp_path: Path) -> Trainer:
    recorder.path = tmp_path / "state.pt"
    seed_torch(recipe.seed, Stream.INITIALISATION)
    data = data_of(recipe)
    return Trainer(build(recipe, data), data, recipe.train, recipe.seed, recorder.hooks())


def numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def test_same_seed_twice_is_the_same_and_another_is_not(recipe: Recipe, tmp_path: Path) -> None:
    recorders = [Recorder() for _ in range(3)]
    other = recipe.model_copy(update={"seed": 1})
    for recorder, chosen in zip(recorders, (recipe, recipe, other), strict=True):
        trainer(chosen, recorder, tmp_path).run()
    first, second, third = (numbers(recorder.rows) for recorder in recorders)
    assert first == second
    assert first != third
    assert len(first) == 4
    assert set(recorders[0].rows[0]) == set(METRICS)


@pytest.mark.parametrize("stop_after", [1, 3, 5, 7])
def test_resumed_training_equals_an_uninterrupted_one_bit_for_bit(
    recipe: Recipe, tmp_path: Path, stop_after: int
) -> None:
    """Five steps an epoch: mid-epoch, at an epoch's last step, and in the next; dropout, crops and all."""
    whole = Recorder()
    reference = trainer(recipe, whole, tmp_path)
    reference.run()
    stopped = Recorder(stop_after)
    with pytest.raises(Interrupted, match=f"stopped by SIGINT after step {stop_after}") as caught:
        trainer(recipe, stopped, tmp_path).run()
    assert caught.value.step == stop_after
    resumed = Recorder()
    again = trainer(recipe, resumed, tmp_path)
    again.restore(stopped.state)
    progress = again.run()
    assert progress.step == reference.steps == 10
    assert numbers([*stopped.rows, *resumed.rows]) == numbers(whole.rows)
    for name, tensor in reference.model.state_dict().items():
        assert torch.equal(tensor, again.model.state_dict()[name]), name


def test_best_is_saved_when_validation_improves(recipe: Recipe, tmp_path: Path) -> None:
    recorder = Recorder()
    progress = trainer(recipe, recorder, tmp_path).run()
    best = max((row for row in recorder.rows if row["split"] == "validation"), key=lambda row: row["top1"])
    assert progress.best_top1 == best["top1"]
    assert recorder.saved[0] == "best"
    assert recorder.saved.count("last") == 2


def test_loss_that_is_not_a_number_stops_the_run(recipe: Recipe, tmp_path: Path) -> None:
    recorder = Recorder()
    broken = trainer(recipe, recorder, tmp_path)
    with torch.no_grad():
        next(broken.model.parameters()).fill_(torch.nan)
    with pytest.raises(TrainingError, match=r"not a finite number in epoch 1 .*the checkpoint of epoch 0 is kept"):
        broken.run()
    assert recorder.saved == []


def test_auxiliary_loss_is_in_the_loss_and_in_the_table(tiny_recipe: Path, tmp_path: Path) -> None:
    recipes = [load(tiny_recipe, [f"attention={{name: primal, s: 3, eta: {eta}}}"]) for eta in (0.0, 10.0)]
    tables = []
    for recipe in recipes:
        recorder = Recorder()
        trainer(recipe, recorder, tmp_path).run()
        tables.append(recorder.rows)
    assert all(row["auxiliary_loss"] == 0 for row in tables[0])
    assert all(row["auxiliary_loss"] > 0 for row in tables[1])
    assert tables[0][-1]["loss"] != tables[1][-1]["loss"]
    assert tables[1][2]["auxiliary_loss"] < tables[1][0]["auxiliary_loss"]


def test_learning_rate_by_hand() -> None:
    """Ten steps an epoch, one epoch of warm-up to 1, then half a cosine over twenty steps."""
    settings = Train(lr=1.0, epochs=3, warmup_epochs=1)
    rates = [learning_rate(step, 10, settings) for step in range(30)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == pytest.approx(1.0)
    assert rates[10] == pytest.approx(1.0)
    assert rates[20] == pytest.approx(0.5)
    assert 0 < rates[29] < 0.01


def test_vectors_are_not_decayed() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LayerNorm(3))
    groups = build_optimizer(model, Train(weight_decay=0.5)).param_groups
    decayed = {group["weight_decay"]: sum(p.numel() for p in group["params"]) for group in groups}
    assert decayed == {0.5: 9, 0.0: 9}


def test_streams_and_counters_have_seeds_of_their_own() -> None:
    seeds = {derived_seed(seed, stream, k) for seed in (0, 1) for stream in Stream for k in range(5)}
    assert len(seeds) == 2 * len(Stream) * 5
    assert torch.equal(
        torch.randperm(9, generator=generator(0, Stream.ORDER, 1)),
        torch.randperm(9, generator=generator(0, Stream.ORDER, 1)),
    )


def test_metrics_table_is_the_same_twice(tiny_recipe: Path, tmp_path: Path) -> None:
    from kattn_cli.commands.train import train

    tables = []
    for folder in ("a", "b"):
        (run,) = train([str(tiny_recipe)], [], [], results=tmp_path / folder, device=torch.device("cpu"))
        with (run.folder / "metrics.csv").open() as file:
            tables.append(numbers(list(csv.DictReader(file))))
    assert tables[0] == tables[1]
