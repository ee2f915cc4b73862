"""Training: the same twice, resumed bit for bit, stopped without loss."""

from __future__ import annotations

import csv
import math
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from timm.scheduler import CosineLRScheduler
from torch import Tensor

from kattn_cli.errors import TrainingError
from kattn_cli.experiment.build import build, data_of
from kattn_cli.experiment.recipes import load
from kattn_cli.recipe.schema import Recipe, Train
from kattn_cli.tasks import objective_of
from kattn_cli.training import loop
from kattn_cli.training.evaluate import Evaluation
from kattn_cli.training.loop import Hooks, Interrupted, Trainer, Update
from kattn_cli.training.seed import Stream, derived_seed, generator, seed_torch
from kattn_cli.training.step import build_optimizer, learning_rate, set_learning_rate

TIMES = ("images_per_second", "seconds")


class Recorder:
    """Keeps what the loop hands out; stops it by a real signal after ``stop_after`` steps."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.saved: list[str] = []
        self.state: dict[str, Any] = {}
        self.weights: dict[str, Tensor] = {}
        self.stop_after = stop_after
        self.updates: list[Update] = []

    def hooks(self) -> Hooks:
        return Hooks(self.on_step, self.rows.extend, self.save)

    def on_step(self, update: Update) -> None:
        self.updates.append(update)
        if update.step == self.stop_after:
            signal.raise_signal(signal.SIGINT)

    def save(self, which: str, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.saved.append(which)
        self.weights = {name: tensor.clone() for name, tensor in weights.items()}
        if which == "last":
            torch.save(state, self.path)
            self.state = torch.load(self.path, weights_only=True)

    path = Path()


@pytest.fixture
def recipe(tiny_recipe: Path) -> Recipe:
    return load(tiny_recipe, ["train.crop_padding=1", "model.drop_path=0.2", "attention.attn_drop=0.1"])


EVERYTHING = [
    "train.crop_scale=0.5",
    "train.flip=0.5",
    "train.randaugment=rand-m9-mstd0.5-inc1",
    "train.erasing=0.25",
    "train.mixup=0.8",
    "train.cutmix=1.0",
    "train.repeats=3",
    "train.ema=0.9",
    "train.accumulate=2",
    "train.clip_grad=1.0",
    "model.drop_path=0.2",
    "attention.attn_drop=0.1",
]
"""The DeiT protocol, with what must be restored beside it."""


@pytest.fixture(params=["plain", "everything", "bfloat16", "float16"])
def protocol(request: pytest.FixtureRequest, tiny_recipe: Path) -> Recipe:
    """From the plainest training to all that a recipe can ask for."""
    if request.param == "plain":
        return load(tiny_recipe, ["train.crop_padding=1", "model.drop_path=0.2", "attention.attn_drop=0.1"])
    if request.param == "everything":
        return load(tiny_recipe, EVERYTHING)
    return load(tiny_recipe, [*EVERYTHING, f"train.precision={request.param}"])


def trainer(recipe: Recipe, recorder: Recorder, tmp_path: Path) -> Trainer:
    recorder.path = tmp_path / "state.pt"
    seed_torch(recipe.seed, Stream.INITIALISATION)
    data = data_of(recipe)
    return Trainer(build(recipe, data), data, objective_of(data), recipe.train, recipe.seed, recorder.hooks())


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
    columns = {"epoch", "step", "split", "loss", "auxiliary_loss", "top1", "top5", "lr", "images_per_second", "seconds"}
    assert set(recorders[0].rows[0]) == columns


@pytest.mark.parametrize("stop_after", [1, 3, 5, 7])
def test_resumed_training_equals_an_uninterrupted_one_bit_for_bit(
    protocol: Recipe, tmp_path: Path, stop_after: int
) -> None:
    """Five steps an epoch: mid-epoch, at an epoch's last step, and in the next; dropout, crops, averages and all."""
    whole = Recorder()
    reference = trainer(protocol, whole, tmp_path)
    reference.run()
    stopped = Recorder(stop_after)
    with pytest.raises(Interrupted, match=f"stopped by SIGINT after step {stop_after}") as caught:
        trainer(protocol, stopped, tmp_path).run()
    assert caught.value.step == stop_after
    resumed = Recorder()
    again = trainer(protocol, resumed, tmp_path)
    again.restore(stopped.state)
    progress = again.run()
    assert progress.step == reference.steps == 10
    assert numbers([*stopped.rows, *resumed.rows]) == numbers(whole.rows)
    for name, tensor in reference.model.state_dict().items():
        assert torch.equal(tensor, again.model.state_dict()[name]), name
    assert all(torch.equal(tensor, resumed.weights[name]) for name, tensor in whole.weights.items())


def test_best_is_saved_when_validation_improves(recipe: Recipe, tmp_path: Path) -> None:
    recorder = Recorder()
    progress = trainer(recipe, recorder, tmp_path).run()
    best = max((row for row in recorder.rows if row["split"] == "validation"), key=lambda row: row["top1"])
    assert progress.best_measures["top1"] == best["top1"]
    assert recorder.saved[0] == "best"
    assert recorder.saved.count("last") == 2


def judged(
    recipe: Recipe, recorder: Recorder, folder: Path, found: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> Trainer:
    """A training whose epochs are found to have these top-1 and losses on validation."""
    judged = trainer(recipe, recorder, folder)
    epochs = iter(found)

    def evaluate(*given: object, **named: object) -> Evaluation:
        top1, loss = next(epochs)
        return Evaluation(images=10, loss=loss, auxiliary_loss=0.0, top1=top1, top5=100.0, ece=0.0)

    monkeypatch.setattr(judged.objective, "evaluate", evaluate)
    return judged


def test_of_equal_epochs_the_smaller_loss_decides_and_then_the_first_stays(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, found = Recorder(), [(50.0, 1.0), (50.0, 1.0), (50.0, 0.9), (50.0, 0.9), (50.0, 0.95)]
    progress = judged(load(tiny_recipe, ["train.epochs=5"]), recorder, tmp_path, found, monkeypatch).run()
    assert recorder.saved == ["best", "last", "last", "best", "last", "last", "last"]
    assert (progress.best_epoch, progress.best_loss, progress.best_measures["top1"]) == (3, 0.9, 50.0)


@pytest.mark.parametrize(
    ("found", "best"), [((80.0, 0.5), 1), ((90.0, 1.1), 1), ((90.0, 1.0), 1), ((90.0, 0.9), 2)], ids=str
)
def test_a_resumed_training_knows_the_best_epoch_so_far(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: tuple[float, float], best: int
) -> None:
    """Its accuracy and its loss, by which a tie is broken."""
    first, second = Recorder(stop_after=5), Recorder()
    with pytest.raises(Interrupted):
        judged(load(tiny_recipe), first, tmp_path, [(90.0, 1.0)], monkeypatch).run()
    resumed = judged(load(tiny_recipe), second, tmp_path, [found], monkeypatch)
    resumed.restore(first.state)
    progress = resumed.run()
    assert (first.saved, second.saved) == (["best", "last"], [*(["best"] if best == 2 else []), "last"])
    top1, loss = found if best == 2 else (90.0, 1.0)
    assert (progress.best_epoch, progress.best_loss, progress.best_measures["top1"]) == (best, loss, top1)


def test_frozen_weights_stay_as_they_were_drawn(tiny_recipe: Path, tmp_path: Path) -> None:
    """W_e and W_r of Primal-Attention, also when the training is resumed; the optimizer knows nothing of them."""
    frozen = {f"backbone.blocks.{layer}.attn.{name}" for layer in (0, 1) for name in ("w_e", "w_r")}
    for asked in (True, False):
        recipe = load(tiny_recipe, [f"attention={{name: primal, s: 3, eta: 0.0, frozen: {str(asked).lower()}}}"])
        drawn = {
            name: tensor.clone() for name, tensor in trainer(recipe, Recorder(), tmp_path).model.state_dict().items()
        }
        first, second, whole = Recorder(stop_after=7), Recorder(), Recorder()
        with pytest.raises(Interrupted):
            trainer(recipe, first, tmp_path).run()
        resumed = trainer(recipe, second, tmp_path)
        resumed.restore(first.state)
        resumed.run()
        trainer(recipe, whole, tmp_path).run()
        assert all(torch.equal(tensor, whole.weights[name]) for name, tensor in second.weights.items())
        moved = {name for name, tensor in second.weights.items() if not torch.equal(tensor, drawn[name])}
        assert frozen <= set(drawn)
        assert frozen & moved == (set() if asked else frozen)
        learnt = [name for name, one in resumed.model.named_parameters() if one.requires_grad]
        assert set(learnt) == {name for name, _ in resumed.model.named_parameters()} - (frozen if asked else set())
        assert len(second.state["optimizer"]["state"]) == len(learnt)


def broken_at(step: int, recipe: Recipe, recorder: Recorder, tmp_path: Path) -> Trainer:
    """A training whose loss is not a number at ``step``, because its images are not."""
    broken: Any = trainer(recipe, recorder, tmp_path)
    augment = broken.feed.augment

    def spoilt(images: Tensor) -> Tensor:
        return images * torch.nan if broken.progress.step + 1 == step else augment(images)

    broken.feed.augment = spoilt
    return broken


def test_loss_that_is_not_a_number_stops_the_run(recipe: Recipe, tmp_path: Path) -> None:
    """At the very step, with nothing of it in the weights, and the last good checkpoint named."""
    recorder = Recorder()
    broken = broken_at(7, recipe, recorder, tmp_path)
    words = r"not a finite number at step 7 of 10 \(lr 0\.00\d+\); the last good checkpoint is that of step 5\. "
    with pytest.raises(TrainingError, match=words):
        broken.run()
    assert recorder.state["progress"]["step"] == 5
    assert all(tensor.isfinite().all() for tensor in broken.model.state_dict().values())
    with pytest.raises(TrainingError, match=r"at step 1 of 10 .* no checkpoint was made yet"):
        broken_at(1, recipe, recorder, tmp_path).run()


def test_a_gradient_that_is_not_a_number_is_skipped_too(tiny_recipe: Path, tmp_path: Path) -> None:
    """With a loss that is one: at step 7 the first parameter's gradient is NaN."""
    broken = trainer(load(tiny_recipe, ["train.on_nonfinite=skip"]), Recorder(), tmp_path)
    parameter = next(broken.model.parameters())
    parameter.register_hook(lambda gradient: gradient * torch.nan if broken.progress.step + 1 == 7 else gradient)
    assert broken.run().skipped == 1
    assert all(tensor.isfinite().all() for tensor in broken.model.state_dict().values())


def test_no_checkpoint_is_kept_of_weights_that_are_not_numbers(tiny_recipe: Path, tmp_path: Path) -> None:
    """The gradient of an epoch's last step is NaN and its loss is not: the validation loss tells."""
    recorder = Recorder()
    broken = trainer(load(tiny_recipe), recorder, tmp_path)
    parameter = next(broken.model.parameters())
    parameter.register_hook(lambda gradient: gradient * torch.nan if broken.progress.step + 1 == 10 else gradient)
    with pytest.raises(TrainingError, match=r"at step 10 of 10 .* the last good checkpoint is that of step 5\."):
        broken.run()
    assert recorder.saved.count("last") == 1


def test_a_state_of_another_model_or_number_of_steps_is_refused(tiny_recipe: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    trainer(load(tiny_recipe), recorder, tmp_path).run()
    for override in ("model.depth=3", "model.dim=32"):
        with pytest.raises(TrainingError, match=r"the state does not fit the recipe: .*; without --resume a new run"):
            trainer(load(tiny_recipe, [override]), Recorder(), tmp_path).restore(recorder.state)
    with pytest.raises(TrainingError, match=r"an epoch had 5 steps and has 10, with other data"):
        trainer(load(tiny_recipe, ["train.batch_size=128"]), Recorder(), tmp_path).restore(recorder.state)
    state = recorder.state
    progress = state["progress"]
    faults = {
        "does not say how far the training came": {key: one for key, one in state.items() if key != "progress"},
        "the state is an earlier version's": {**state, "progress": {**progress, "step": "five"}},
        "the state is an earlier version's; ": {**state, "progress": {**progress, "of_old": 1}},
        "the state is an earlier version's; without": {**state, "progress": 3},
        "the state does not fit the recipe: .*size": {**state, "progress": {**progress, "sums": [1.0]}},
        "the state does not fit the recipe: .*model": {key: one for key, one in state.items() if key != "model"},
        "the state does not fit the recipe: ": {**state, "optimizer": 3},
    }
    for told, broken in faults.items():
        with pytest.raises(TrainingError, match=told):
            trainer(load(tiny_recipe), Recorder(), tmp_path).restore(broken)
    other = trainer(load(tiny_recipe, ["train.ema=0.9", "train.weight_decay=0.3"]), Recorder(), tmp_path)
    other.restore(recorder.state)
    assert {group["weight_decay"] for group in other.optimizer.param_groups} == {0.0, 0.3}


def test_steps_without_a_finite_loss_can_be_skipped(tiny_recipe: Path, tmp_path: Path) -> None:
    recipe = load(tiny_recipe, ["train.on_nonfinite=skip", "train.ema=0.9"])
    recorder = Recorder()
    progress = broken_at(7, recipe, recorder, tmp_path).run()
    assert (progress.step, progress.skipped) == (10, 1)
    assert all(math.isfinite(row["loss"]) for row in recorder.rows)
    broken = trainer(recipe, Recorder(), tmp_path)
    with torch.no_grad():
        next(broken.model.parameters()).fill_(torch.nan)
    with pytest.raises(TrainingError, match="every step of epoch 1 was skipped"):
        broken.run()


@pytest.mark.parametrize("override", ["train.ema=0.5", "train.accumulate=3", "train.repeats=3", "train.mixup=0.8"])
def test_settings_change_the_numbers(recipe: Recipe, tiny_recipe: Path, tmp_path: Path, override: str) -> None:
    tables = []
    for overrides in ([], [override]):
        recorder = Recorder()
        trainer(load(tiny_recipe, overrides), recorder, tmp_path).run()
        tables.append(numbers(recorder.rows))
    assert tables[0] != tables[1]


def test_average_of_weights_by_hand(tiny_recipe: Path, tmp_path: Path) -> None:
    """ē ← 0.75 ē + 0.25 w after each step, from the initial weights; it is what is evaluated and kept."""
    recorder = Recorder()
    averaged = trainer(load(tiny_recipe, ["train.ema=0.75"]), recorder, tmp_path)
    head = averaged.model.state_dict()["backbone.head.weight"]
    expected = head.clone()
    steps: list[int] = []

    def after(optimizer: object, args: object, kwargs: object) -> None:
        steps.append(1)
        expected.mul_(0.75).add_(averaged.model.state_dict()["backbone.head.weight"], alpha=0.25)

    averaged.optimizer.register_step_post_hook(after)
    averaged.run()
    assert len(steps) == 10
    torch.testing.assert_close(recorder.weights["backbone.head.weight"], expected)
    assert not torch.equal(expected, averaged.model.state_dict()["backbone.head.weight"])


def test_accumulation_gives_the_gradients_of_the_whole_batch(tiny_recipe: Path, tmp_path: Path) -> None:
    """With nothing drawn at random, three parts of a batch make the step that the whole makes, but for rounding."""
    tables = []
    for accumulate in (1, 3):
        recorder = Recorder()
        trainer(load(tiny_recipe, [f"train.accumulate={accumulate}"]), recorder, tmp_path).run()
        tables.append([row["loss"] for row in recorder.rows])
    assert tables[0] == pytest.approx(tables[1], abs=1e-5)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("share", [None, 0.1, 2.0])
def test_gradients_of_a_step_by_hand(accumulate: int, share: float | None, tiny_recipe: Path, tmp_path: Path) -> None:
    """Of the smoothed cross-entropy's mean over the batch, however many its parts; clipped to a share of their norm.

    AdamW forgives gradients of another scale, so that no loss would tell.
    """
    twin = trainer(load(tiny_recipe), Recorder(), tmp_path)
    ((shard, images, labels),) = next(twin.feed.shards(twin.plan.batches(0)))
    assert len(shard.indices) == 256
    logs = twin.model(images).log_softmax(-1)
    (-0.9 * logs[range(256), labels] - 0.1 * logs.mean(-1)).mean().backward()
    expected = [parameter.grad for parameter in twin.model.parameters()]
    norm = torch.cat([gradient.flatten() for gradient in expected if gradient is not None]).norm().item()
    overrides = [f"train.accumulate={accumulate}", *([f"train.clip_grad={share * norm}"] if share else [])]
    training = trainer(load(tiny_recipe, overrides), Recorder(), tmp_path)
    loss = training.step(next(training.feed.shards(training.plan.batches(0))), lr=0.0)
    assert loss.item() == pytest.approx((-0.9 * logs[range(256), labels] - 0.1 * logs.mean(-1)).mean().item(), rel=1e-5)
    for parameter, gradient in zip(training.model.parameters(), expected, strict=True):
        assert (parameter.grad is None) is (gradient is None)
        if parameter.grad is not None and gradient is not None:
            torch.testing.assert_close(parameter.grad, gradient * min(share or 1, 1), rtol=1e-4, atol=1e-7)


def test_peak_memory_is_weights_and_moments_and_what_a_step_takes(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of 5 MiB, by a measure that is written down; it goes forward and backward and leaves nothing behind."""
    training = trainer(load(tiny_recipe), Recorder(), tmp_path)
    parameters = list(training.model.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    training.model.eval()

    def measured(step: Callable[[], object], device: torch.device) -> float:
        step()
        assert training.model.training
        assert any(parameter.grad is not None for parameter in parameters)
        return 5.0

    monkeypatch.setattr("kattn_cli.training.loop.peak_memory", measured)
    own = sum(4 * parameter.numel() for parameter in parameters)
    assert training.peak_memory() == pytest.approx(5 + 3 * own / 2**20, rel=1e-12), "weights and two moments"
    assert all(parameter.grad is None for parameter in parameters)
    assert all(map(torch.equal, parameters, before))


def test_what_a_progress_bar_is_told(tiny_recipe: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    trainer(load(tiny_recipe), recorder, tmp_path).run()
    updates = recorder.updates
    assert [update.step for update in updates] == list(range(1, 11))
    assert {update.steps for update in updates} == {10}
    assert [update.epoch for update in updates] == [1] * 5 + [2] * 5
    assert [update.validation is None for update in updates] == [True] * 5 + [False] * 5
    assert all(update.loss.isfinite() and update.samples_per_second > 0 for update in updates)
    settings = load(tiny_recipe).train
    assert [update.lr for update in updates] == [learning_rate(step, 5, settings) for step in range(10)]


def test_rows_of_an_epoch_are_means_over_all_images(tiny_recipe: Path, tmp_path: Path) -> None:
    """Of weights that all but stand still; the last of five batches is of 233 images, not 256."""
    recorder = Recorder()
    training = trainer(load(tiny_recipe, ["train.lr=1e-12", "train.min_lr=2e-13"]), recorder, tmp_path)
    splits: Mapping[Any, Any] = data_of(load(tiny_recipe)).splits
    found = {}
    with torch.no_grad():
        for name, smoothing in (("train", 0.1), ("validation", 0.0)):
            images, labels = splits[name].take(torch.arange(len(splits[name])))
            logits = training.model.eval()(images).double()
            loss = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing).item()
            found[name] = {"loss": loss, "top1": 100 * (logits.argmax(-1) == labels).double().mean().item()}
    training.run()
    for row in recorder.rows:
        assert {name: row[name] for name in ("loss", "top1")} == pytest.approx(found[row["split"]], rel=1e-5)
    # The rate of the epoch's last step: the end of the warm-up, then the fifth of five steps of the cosine.
    last = 2e-13 + 8e-13 * 0.5 * (1 + math.cos(math.pi * 4 / 5))
    assert [row["lr"] for row in recorder.rows[::2]] == pytest.approx([1e-12, last], rel=1e-9, abs=0)
    assert [(row["epoch"], row["step"]) for row in recorder.rows] == [(1, 5), (1, 5), (2, 10), (2, 10)]


def test_every_part_of_a_step_has_random_numbers_of_its_own(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed of the run, the stream of steps, and a number that no other part of the training has."""
    drawn: list[tuple[int, Stream, int]] = []
    monkeypatch.setattr(loop, "seed_all", lambda *seeds: drawn.append(seeds))
    recipe = load(tiny_recipe, ["train.accumulate=2", "seed=3"])
    trainer(recipe, Recorder(), tmp_path).run()
    assert drawn == [(3, Stream.STEP, number) for number in range(2 * 10)]


def test_gradient_checkpointing_changes_nothing(recipe: Recipe, tiny_recipe: Path, tmp_path: Path) -> None:
    tables = []
    for chosen in ("false", "true"):
        recorder = Recorder()
        overrides = [f"train.grad_checkpointing={chosen}", "model.drop_path=0.2", "attention.attn_drop=0.1"]
        trainer(load(tiny_recipe, overrides), recorder, tmp_path).run()
        tables.append(numbers(recorder.rows))
    assert tables[0] == tables[1]


def test_state_is_kept_every_so_many_steps(tiny_recipe: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    trainer(load(tiny_recipe, ["train.checkpoint_steps=2"]), recorder, tmp_path).run()
    assert recorder.saved.count("last") == 2 + 4


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


@pytest.mark.parametrize("square", ["batch", "sample"])
def test_what_is_squared_after_averaging_depends_on_the_parts_of_a_batch(
    square: str, tiny_recipe: Path, tmp_path: Path
) -> None:
    """Primal's ``square: batch`` averages over the part that is seen at once, by hand; ``sample`` over nothing."""
    found = []
    for accumulate in (1, 4):
        attention = f"attention={{name: primal, s: 3, eta: 1.0, convention: reference, square: {square}}}"
        still = ["train.epochs=1", "train.lr=1e-12", f"train.accumulate={accumulate}"]
        recorder = Recorder()
        training = trainer(load(tiny_recipe, [attention, *still]), recorder, tmp_path)
        expected = 0.0
        with torch.no_grad():
            for shards in training.feed.shards(training.plan.batches(0)):
                for shard, images, _ in shards:
                    training.model(images)
                    for layer in training.model.mechanisms():
                        each = layer.objective().double()  # type: ignore[operator]
                        term = each.mean().square() if square == "batch" else each.square().mean()
                        expected += term.item() / 2 * len(shard.indices) / training.plan.images
        training.run()
        assert recorder.rows[0]["auxiliary_loss"] == pytest.approx(expected, rel=1e-5)
        found.append(recorder.rows[0]["auxiliary_loss"])
    assert (found[0] == pytest.approx(found[1], rel=1e-5)) is (square == "sample")


def test_learning_rate_by_hand() -> None:
    """Ten steps an epoch, one epoch of warm-up to 1, then half a cosine over twenty steps."""
    settings = Train(lr=1.0, epochs=3, warmup_epochs=1)
    rates = [learning_rate(step, 10, settings) for step in range(30)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == pytest.approx(1.0)
    assert rates[10] == pytest.approx(1.0)
    assert rates[20] == pytest.approx(0.5)
    assert 0 < rates[29] < 0.01


def test_a_warm_up_of_so_many_steps_takes_the_place_of_one_of_epochs() -> None:
    settings = Train(lr=1.0, min_lr=0.2, warmup_lr=0.1, epochs=2, warmup_epochs=1, warmup_steps=3)
    rates = [learning_rate(step, 5, settings) for step in range(10)]
    cosine = [0.2 + 0.4 * (1 + math.cos(math.pi * step / 7)) for step in range(7)]
    assert rates == pytest.approx([0.4, 0.7, 1.0, *cosine])


def test_a_training_that_is_all_warm_up_ends_at_the_full_rate() -> None:
    settings = Train(lr=1.0, epochs=1, warmup_epochs=1)
    assert [learning_rate(step, 4, settings) for step in range(4)] == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_learning_rate_is_timms() -> None:
    """DeiT's schedule by update: warm-up from 1e-6, cosine to 1e-5."""
    settings = Train(lr=1e-3, min_lr=1e-5, warmup_lr=1e-6, epochs=10, warmup_epochs=2)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=1e-3)
    theirs = CosineLRScheduler(
        optimizer, t_initial=80, lr_min=1e-5, warmup_t=20, warmup_lr_init=1e-6, warmup_prefix=True, t_in_epochs=False
    )
    for step in range(100):
        theirs.step_update(step + 1 if step < 20 else step)
        assert learning_rate(step, 10, settings) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9), step


def test_vectors_are_not_decayed() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LayerNorm(3))
    groups = build_optimizer(model, Train(weight_decay=0.5)).param_groups
    decayed = {group["weight_decay"]: sum(p.numel() for p in group["params"]) for group in groups}
    assert decayed == {0.5: 9, 0.0: 9}


def test_the_optimizer_is_adamw_as_published_and_all_its_groups_have_one_rate() -> None:
    optimizer = build_optimizer(torch.nn.Linear(3, 3), Train(lr=0.25))
    set_learning_rate(optimizer, 0.125)
    assert {(group["lr"], group["betas"], group["eps"]) for group in optimizer.param_groups} == {
        (0.125, (0.9, 0.999), 1e-8)
    }
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.0, 0.05]
    assert not any(group["amsgrad"] or group["maximize"] for group in optimizer.param_groups)


def test_streams_and_counters_have_seeds_of_their_own() -> None:
    seeds = {derived_seed(seed, stream, k) for seed in (0, 1) for stream in Stream for k in range(5)}
    assert len(seeds) == 2 * len(Stream) * 5
    assert torch.equal(
        torch.randperm(9, generator=generator(0, Stream.ORDER, 1)),
        torch.randperm(9, generator=generator(0, Stream.ORDER, 1)),
    )


def test_concrete_seeds_that_must_never_change() -> None:
    """Or a run that was begun before could not go on as it would have, nor an attack be made again."""
    assert [(stream.name, derived_seed(0, stream)) for stream in Stream] == [
        ("INITIALISATION", 7896617691693857887),
        ("ORDER", 2918264622725855778),
        ("STEP", 8597659618385908031),
        ("ATTACK", 3291213472928352369),
        ("COMPLEXITY", 2494635221133837528),
        ("IMAGE", 6102389744414414618),
        ("CORRUPTION", 3656545308831359172),
        ("PROBE", 4625441644015172652),
    ]
    assert derived_seed(1, Stream.ORDER, 2) == 4577980684254263135


def test_metrics_table_is_the_same_twice(tiny_recipe: Path, tmp_path: Path) -> None:
    from kattn_cli.commands.train.train import train

    tables = []
    for folder in ("a", "b"):
        (run,) = train([str(tiny_recipe)], [], [], results=tmp_path / folder, device=torch.device("cpu"))
        with (run.folder / "metrics.csv").open() as file:
            tables.append(numbers(list(csv.DictReader(file))))
    assert tables[0] == tables[1]


def test_a_training_without_a_step_is_refused(tiny_recipe: Path, tmp_path: Path) -> None:
    overrides = ["train.batch_size=8192", "train.accumulate=4096"]
    with pytest.raises(TrainingError, match="no step would be made: 1,257 training images do not fill the 4,096"):
        trainer(load(tiny_recipe, overrides), Recorder(), tmp_path)


def test_weights_of_epochs_are_kept_and_change_nothing(tiny_recipe: Path, tmp_path: Path) -> None:
    plain, keeping = Recorder(), Recorder()
    trainer(load(tiny_recipe, ["train.epochs=5"]), plain, tmp_path).run()
    trainer(load(tiny_recipe, ["train.epochs=5", "train.keep_every=2"]), keeping, tmp_path).run()
    kept = [name for name in keeping.saved if name.startswith("epoch")]
    assert kept == ["epoch-0000", "epoch-0002", "epoch-0004", "epoch-0005"]
    assert [name for name in keeping.saved if name not in kept] == plain.saved
    assert all(torch.equal(tensor, keeping.weights[name]) for name, tensor in plain.weights.items())


def test_a_resumed_training_does_not_keep_its_first_weights_again(tiny_recipe: Path, tmp_path: Path) -> None:
    changes = ["train.epochs=3", "train.keep_every=1"]
    first = Recorder(stop_after=10)
    with pytest.raises(Interrupted):
        trainer(load(tiny_recipe, changes), first, tmp_path).run()
    second = Recorder()
    resumed = trainer(load(tiny_recipe, changes), second, tmp_path)
    resumed.restore(first.state)
    resumed.run()
    assert "epoch-0000" in first.saved
    assert "epoch-0000" not in second.saved
    assert "epoch-0003" in second.saved
