"""Training on texts and on padded sequences: resumed bit for bit, and by what the best epoch is chosen."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_series import UNCOUNTED, write_series
from torch import Tensor

from kattn_cli.data import TextData
from kattn_cli.errors import TrainingError
from kattn_cli.experiment.build import build, data_of
from kattn_cli.experiment.recipes import load
from kattn_cli.recipe.schema import Recipe
from kattn_cli.tasks import objective_of
from kattn_cli.tasks.text.objective import EVAL_LOGITS, EVAL_TOKENS, windows_at_once
from kattn_cli.training.evaluate import Evaluation
from kattn_cli.training.loop import Hooks, Interrupted, Trainer, Update
from kattn_cli.training.seed import Stream, seed_torch

TIMES = ("sequences_per_second", "seconds")
TEXT = "\n".join(f"{number} bottles of beer on the wall, {number} bottles of beer." for number in range(60))

ON_TEXT = """\
name: beer
data: {{name: text, path: {path}, context: 16}}
model: {{name: decoder, dim: 16, depth: 2, heads: 2, mlp_ratio: 2.0, dropout: 0.2, drop_path: 0.1}}
attention: {{name: softmax, layers: {{-1: {{name: primal, projection: data-independent, s: 3, eta: 0.01}}}}}}
train: {{epochs: 3, batch_size: 64, lr: 1e-2, accumulate: 2, ema: 0.9, clip_grad: 1.0, label_smoothing: 0.0}}
"""
ON_SERIES = """\
name: rings
data: {{name: uea, set: {set}, root: {path}, validation: 0.25}}
model: {{name: encoder, dim: 16, depth: 2, heads: 2, dropout: 0.2, drop_path: 0.1}}
attention: {{name: softmax, layers: {{0: {{name: rpc, iterations: 2, attn_drop: 0.1}}}}}}
train: {{epochs: 3, batch_size: 6, lr: 1e-2}}
"""


class Recorder:
    """Keeps what the loop hands out; stops it by a real signal after ``stop_after`` steps."""

    def __init__(self, folder: Path, stop_after: int | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.saved: list[str] = []
        self.path, self.stop_after = folder / "state.pt", stop_after

    def hooks(self) -> Hooks:
        return Hooks(self.on_step, self.rows.extend, self.save)

    def on_step(self, update: Update) -> None:
        if update.step == self.stop_after:
            signal.raise_signal(signal.SIGINT)

    def save(self, which: str, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.saved.append(which)
        if which == "last":
            torch.save(state, self.path)

    def numbers(self) -> list[dict[str, Any]]:
        return [{key: value for key, value in row.items() if key not in TIMES} for row in self.rows]


@pytest.fixture
def on_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "data"))
    (tmp_path / "beer.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "beer.yaml").write_text(ON_TEXT.format(path=tmp_path / "beer.txt"), encoding="utf-8")
    return load(tmp_path / "beer.yaml")


@pytest.fixture
def on_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    pytest.importorskip("aeon")
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "data"))
    write_series(tmp_path / "uea", train=24)
    (tmp_path / "rings.yaml").write_text(ON_SERIES.format(set=UNCOUNTED, path=tmp_path / "uea"), encoding="utf-8")
    return load(tmp_path / "rings.yaml")


@pytest.fixture(params=["on_text", "on_series"])
def recipe(request: pytest.FixtureRequest) -> Recipe:
    return request.getfixturevalue(request.param)


def trainer(recipe: Recipe, recorder: Recorder) -> Trainer:
    seed_torch(recipe.seed, Stream.INITIALISATION)
    data = data_of(recipe)
    return Trainer(build(recipe, data), data, objective_of(data), recipe.train, recipe.seed, recorder.hooks())


def test_same_seed_twice_is_the_same_and_another_is_not(recipe: Recipe, tmp_path: Path) -> None:
    recorders = [Recorder(tmp_path) for _ in range(3)]
    other = recipe.model_copy(update={"seed": 1})
    for recorder, chosen in zip(recorders, (recipe, recipe, other), strict=True):
        trainer(chosen, recorder).run()
    first, second, third = (recorder.numbers() for recorder in recorders)
    assert first == second
    assert first != third
    columns = {"epoch", "step", "split", "loss", "auxiliary_loss", "top1", "top5", "lr", *TIMES}
    assert set(recorders[0].rows[0]) == columns
    losses = [row["loss"] for row in first if row["split"] == "train"]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("stop_after", [1, 3, 4, 5])
def test_resumed_training_equals_an_uninterrupted_one_bit_for_bit(
    recipe: Recipe, tmp_path: Path, stop_after: int
) -> None:
    """Three steps an epoch: in its middle, at its end, and in the next, whose windows of text begin elsewhere."""
    whole, stopped, resumed = (Recorder(tmp_path, stop) for stop in (None, stop_after, None))
    reference = trainer(recipe, whole)
    reference.run()
    assert reference.steps_per_epoch == 3
    with pytest.raises(Interrupted, match=f"after step {stop_after} "):
        trainer(recipe, stopped).run()
    again = trainer(recipe, resumed)
    again.restore(torch.load(stopped.path, weights_only=True))
    again.run()
    assert stopped.numbers() + resumed.numbers() == whole.numbers()
    for one, other in ((reference.model, again.model), (reference.ema, again.ema)):
        for name, tensor in (one.state_dict() if one else {}).items():
            assert other is not None
            assert torch.equal(tensor, other.state_dict()[name]), name


def test_a_text_of_another_length_cannot_go_on(on_text: Recipe, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    trainer(on_text, recorder).run()
    (tmp_path / "beer.txt").write_text(3 * TEXT, encoding="utf-8")
    longer = on_text.model_copy(update={"data": on_text.data.model_copy(update={"choose_on": "test"})})
    with pytest.raises(TrainingError, match=r"^an epoch had 3 steps and has 9, with other data"):
        trainer(longer, Recorder(tmp_path)).restore(torch.load(recorder.path, weights_only=True))


@pytest.mark.parametrize(("kind", "best"), [("on_text", 2), ("on_series", 3)])
def test_the_best_epoch(
    kind: str, best: int, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a text that of the least loss, of classes that of the most right, and then of the least loss."""
    recipe, recorder = request.getfixturevalue(kind), Recorder(tmp_path)
    worth = iter([(2.0, 50.0), (1.0, 40.0), (1.5, 50.0)])

    def evaluated(*_: object, **__: object) -> Evaluation:
        loss, top1 = next(worth)
        return Evaluation(9, loss, 0.0, top1, 90.0, 0.1)

    training = trainer(recipe, recorder)
    monkeypatch.setattr(training.objective, "evaluate", evaluated)
    progress = training.run()
    assert progress.best_epoch == best
    assert recorder.saved.count("best") == 2


def test_windows_evaluated_at_once(on_text: Recipe) -> None:
    """Few enough for the memory that their logits take."""
    data = data_of(on_text)
    assert isinstance(data, TextData)
    assert data.classes < 40
    assert windows_at_once(data.context, data.classes) == EVAL_TOKENS // 16
    assert windows_at_once(1024, 50_257) == EVAL_LOGITS // 50_257 // 1024 == 2
    assert windows_at_once(4096, 50_257) == 1
