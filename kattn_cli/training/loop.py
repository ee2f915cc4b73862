"""The training loop: one epoch after the other, each step determined by the seed and the step's number."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from timm.utils import ModelEmaV3
from torch import Tensor

from kattn_cli.costs.memory import MIB, peak_memory
from kattn_cli.costs.summary import ADAMW_MOMENTS
from kattn_cli.data.loaded import LoadedData
from kattn_cli.errors import TrainingError
from kattn_cli.models import AttentionModel, auxiliary_loss
from kattn_cli.recipe.train import Train
from kattn_cli.runs.weights import kept_name
from kattn_cli.training.distributed import World
from kattn_cli.training.feed import Dealt, Feed, SyntheticFeed, SyntheticSplit
from kattn_cli.training.interrupt import Interruption, catch_interruption
from kattn_cli.training.objective import Checked, Objective
from kattn_cli.training.plan import Plan
from kattn_cli.training.seed import Stream, seed_all
from kattn_cli.training.sharding import accumulating, clip, full_state, load_full_state, parallelise, whole
from kattn_cli.training.step import (
    CHECK_EVERY,
    NonFinite,
    autocast,
    build_optimizer,
    compiled,
    grad_scaler,
    learning_rate,
    set_learning_rate,
)


@dataclass
class Progress:
    """Where a training stands; ``sums`` are those of the epoch in hand."""

    step: int = 0
    seconds: float = 0.0
    best_loss: float = math.inf
    best_measures: dict[str, float] = field(default_factory=dict)
    best_epoch: int = 0
    skipped: int = 0
    sums: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Update:
    """What a progress bar shows; ``loss`` is a tensor, so that only a bar that is drawn waits for it."""

    step: int
    steps: int
    epoch: int
    loss: Tensor
    lr: float
    validation: Checked | None
    samples_per_second: float


@dataclass(frozen=True)
class Hooks:
    """Callbacks of the loop: after each step, with each epoch's rows, and to keep checkpoints.

    ``save(which, weights, state)``: ``which`` is ``best``, ``last`` or an epoch's
    (:func:`~kattn_cli.runs.weights.kept_name`); ``state`` is what :meth:`Trainer.restore` takes.
    """

    on_step: Callable[[Update], None]
    on_epoch: Callable[[list[dict[str, Any]]], None]
    save: Callable[[str, dict[str, Tensor], dict[str, Any]], None]


class Interrupted(Exception):
    """The user stopped the training; the state at ``step`` was kept."""

    def __init__(self, step: int, epoch: int, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} after step {step:,} (epoch {epoch})")
        self.step, self.epoch, self.signal = step, epoch, number


class Trainer:
    """Trains ``model`` on the training split, choosing the best epoch on the split that the data names for it."""

    def __init__(
        self,
        model: AttentionModel,
        data: LoadedData,
        objective: Objective,
        settings: Train,
        seed: int,
        hooks: Hooks,
        world: World | None = None,
    ) -> None:
        device = model.device
        self.model, self.settings, self.seed, self.hooks = model, settings, seed, hooks
        self.world, self.chosen_on, self.unit = world or World(), data.chosen_on, data.unit
        train_split = data.splits["train"].to(device)
        self.validation = data.splits["validation"].to(device)
        self.plan = Plan(len(train_split), settings, seed, self.world.rank, self.world.size)
        self.feed: Feed = (
            SyntheticFeed(train_split)
            if isinstance(train_split, SyntheticSplit)
            else objective.feed(train_split, self.plan, settings, device)
        )
        self.objective = objective
        self.mix = objective.mix(settings)
        model.set_grad_checkpointing(settings.grad_checkpointing)
        # Copied before parallelise, which with FSDP leaves the model's parameters in pieces.
        self.ema = ModelEmaV3(model, decay=settings.ema) if settings.ema else None
        self.parallel = parallelise(model, settings.parallel, self.world, device)
        self.forward: Callable[[Any], Tensor] = self.parallel
        if settings.compile:
            self.forward = compiled(self.parallel, checkpointing=settings.grad_checkpointing)
        # After parallelise, since FSDP replaces the parameters that the optimizer must hold.
        self.optimizer = build_optimizer(model, settings)
        self.scaler = grad_scaler(settings.precision, device)
        self.progress = Progress()
        self.steps_per_epoch, self.steps = self.plan.steps_per_epoch, self.plan.steps
        if not self.steps:
            raise TrainingError(
                f"no step would be made: {len(train_split):,} training {self.unit} do not fill the "
                f"{self.plan.shards:,} parts of a batch; lower train.accumulate or the number of processes"
            )
        self._device = device
        self._nonfinite = NonFinite(device)
        self._saved_step: int | None = None
        # In float64, and on the device so that adding to it does not make the CPU wait for a step.
        self._sums = torch.zeros(3 + self.objective.kept, dtype=torch.float64, device=device)
        """Over the epoch: how many things were predicted, the two losses times that, and the objective's own sums."""
        self._validation: Checked | None = None

    def state(self) -> dict[str, Any]:
        """Return all that :meth:`restore` needs to go on from here, in any number of processes."""
        weights, optimizer = full_state(self.model, self.optimizer)
        # One sum over all processes, so that another number of processes can go on from it.
        self.progress.sums = self.world.sum(self._sums.cpu()).tolist()
        return {
            "model": weights,
            "optimizer": optimizer,
            "progress": asdict(self.progress),
            "steps_per_epoch": self.steps_per_epoch,
            "scaler": self.scaler.state_dict(),
            "ema": self.ema.module.state_dict() if self.ema else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned.

        Raises:
            TrainingError: if it is of another model, or an epoch has another number of steps now.
        """
        per_epoch = state.get("steps_per_epoch", self.steps_per_epoch)
        if isinstance(per_epoch, int) and per_epoch != self.steps_per_epoch:
            raise TrainingError(
                f"an epoch had {per_epoch:,} steps and has {self.steps_per_epoch:,}, with other data, "
                "batches or numbers of processes; without --resume a new run begins"
            )
        if "progress" not in state:
            raise TrainingError("the state does not say how far the training came; without --resume a new run begins")
        try:
            self.progress = TypeAdapter(Progress).validate_python(asdict(Progress(**state["progress"])))
        except (TypeError, ValidationError):
            raise TrainingError("the state is an earlier version's; without --resume a new run begins") from None
        try:
            self._take_over(state)
        except (RuntimeError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            first = " ".join(str(error).split("\n")[:2])
            raise TrainingError(
                f"the state does not fit the recipe: {first}; without --resume a new run begins"
            ) from None

    def _take_over(self, state: dict[str, Any]) -> None:
        load_full_state(self.model, self.optimizer, state["model"], state["optimizer"])
        if scaler := state.get("scaler"):
            self.scaler.load_state_dict(scaler)
        if self.ema:
            self.ema.module.load_state_dict(state.get("ema") or state["model"])
        self._saved_step = self.progress.step
        if self.world.main:
            self._sums.copy_(torch.tensor(self.progress.sums, dtype=torch.float64).view_as(self._sums))

    def run(self) -> Progress:
        """Train to the end, and return where the training then stands.

        Raises:
            Interrupted: after SIGINT or SIGTERM, once the step in hand is done and the state kept.
            TrainingError: if a loss is not a finite number, or another process of the training is gone.
        """
        with self.world.lost_peer(), catch_interruption() as interruption:
            if self.settings.keep_every and not self.progress.step:
                self._save(kept_name(0))
            while self.progress.step < self.steps:
                self._run_epoch(interruption)
                self._stop_if_asked(interruption)
        return self.progress

    def peak_memory(self) -> float:
        """Return the MiB that a step of this process takes at most: weights, gradients, AdamW's moments included.

        On a GPU that is the most the training took so far; on a CPU one more batch goes forward and backward for it,
        and its gradients are dropped.
        """
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device) / MIB
        dealt = next(self.feed.shards(self.plan.batches(0)))[0]
        self.model.train()
        self.optimizer.zero_grad()
        # Weights and moments exist before the measured call, which therefore does not see them.
        own = sum(parameter.nbytes for parameter in self.model.parameters())
        step = peak_memory(lambda: self._backward(dealt, torch.zeros_like(self._sums)), self._device)
        self.optimizer.zero_grad()
        return step + (1 + ADAMW_MOMENTS) * own / MIB

    def _run_epoch(self, interruption: Interruption) -> None:
        epoch, first = divmod(self.progress.step, self.steps_per_epoch)
        started, seen = time.perf_counter(), 0
        before = self.progress.seconds
        self.model.train()
        for shards in self.feed.shards(self.plan.batches(epoch, first)):
            lr = learning_rate(self.progress.step, self.steps_per_epoch, self.settings)
            loss = self.step(shards, lr)
            seen += sum(len(shard.indices) for shard, _, _ in shards) * self.world.size
            elapsed = time.perf_counter() - started
            self.progress.step += 1
            self.progress.seconds = before + elapsed
            step = self.progress.step
            self.hooks.on_step(Update(step, self.steps, epoch + 1, loss, lr, self._validation, seen / elapsed))
            # At the end of an epoch _finish_epoch saves, with the best epoch chosen, so not here as well.
            if step % self.steps_per_epoch and self._pause(interruption):
                self._require_numbers(lr)
                self._save("last")
                self._stop_if_asked(interruption)
        self._finish_epoch(epoch, seen / (time.perf_counter() - started))

    def _pause(self, interruption: Interruption) -> bool:
        """Return whether to keep the state in mid-epoch: the recipe says so, or the user stops the training."""
        every = self.settings.checkpoint_steps
        due = every is not None and self.progress.step % every == 0
        # Asked first and always: every process must take part in the agreement.
        return self._agree_to_stop(interruption) or due

    def _agree_to_stop(self, interruption: Interruption) -> bool:
        """Return whether to stop; processes compare every few steps, so that all stop after the same one."""
        if self.world.size > 1:
            if self.progress.step % CHECK_EVERY and self.progress.step % self.steps_per_epoch:
                return False
            if not self.world.any(interruption.signal is not None):
                return False
            interruption.signal = interruption.signal or signal.SIGINT
        return interruption.signal is not None

    def _stop_if_asked(self, interruption: Interruption) -> None:
        """Raise Interrupted once the state is saved; a training that is complete is not stopped any more."""
        step = self.progress.step
        if self._saved_step == step < self.steps and self._agree_to_stop(interruption):
            assert interruption.signal is not None
            raise Interrupted(step, math.ceil(step / self.steps_per_epoch), interruption.signal)

    def step(self, shards: list[Dealt], lr: float) -> Tensor:
        """Make one step of the optimizer with this process's shards of a batch, and return its part of the loss."""
        set_learning_rate(self.optimizer, lr)
        self.optimizer.zero_grad()
        total = torch.zeros((), device=self._device)
        sums = torch.zeros_like(self._sums)
        for number, dealt in enumerate(shards, 1):
            with accumulating(self.parallel, last=number == len(shards)):
                # Shares add up to 1 over all processes, whose gradients are averaged: hence the factor.
                total += self._backward(dealt, sums) * (dealt[0].share * self.world.size)
        self._nonfinite.note(self.progress.step + 1, total)
        # Unscaled before clipping, which must see the true gradients; averaged weights follow the step.
        self.scaler.unscale_(self.optimizer)
        self._clip()
        if self._may_step(lr):
            # Only steps that are made count, or one NaN would spoil the epoch's means.
            self._sums += sums
            self.scaler.step(self.optimizer)
            if self.ema:
                self.ema.update(self.model)
        self.scaler.update()
        return total

    def _backward(self, dealt: Dealt, sums: Tensor) -> Tensor:
        """Run one shard forward and backward, add to ``sums``, and return its loss with auxiliary terms, detached."""
        shard, inputs, targets = dealt
        # Augmentation, mixing and dropout draw from here on, each shard its own, however many processes share them.
        seed_all(self.seed, Stream.STEP, shard.draw)
        inputs = self.feed.augment(inputs)
        if self.mix:
            inputs, targets = self.mix(inputs, targets)
        with autocast(self.settings.precision, self._device):
            outputs = self.forward(inputs)
            task = self.objective.loss(outputs, targets, self.settings.label_smoothing)
            # Right after the forward pass, whose values the mechanisms' terms are read off.
            auxiliary = auxiliary_loss(self.model)
        loss = task + auxiliary
        self.scaler.scale(loss * (shard.share * self.world.size)).backward()
        with torch.no_grad():
            count = self.objective.count(targets)
            # Means become sums, since batches and shards may differ in how much they predict.
            means = torch.stack([count, task.double() * count, auxiliary.double() * count])
            sums += torch.cat((means, self.objective.sums(outputs, targets)))
        return loss.detach()

    def _clip(self) -> None:
        """Clip the gradients, and note a norm that is not a number; in float16 the scaler skips such steps itself."""
        skip = self.settings.on_nonfinite == "skip"
        if self.settings.clip_grad or skip:
            norm = clip(self.model, self.settings.clip_grad or math.inf)
            if not self.scaler.is_enabled():
                self._nonfinite.note(self.progress.step + 1, norm)

    def _may_step(self, lr: float) -> bool:
        """Return whether the gradients belong to a loss that is a number.

        Raises:
            TrainingError: if they are not and the recipe does not say to skip such steps.
        """
        skip = self.settings.on_nonfinite == "skip"
        # Reading the flag makes the CPU wait for a GPU, so it is read now and then where nothing is skipped.
        if not skip and (self.progress.step + 1) % self._nonfinite.every:
            return True
        first = self._nonfinite.first()
        if not self.world.any(first is not None):
            return True
        if not skip:
            raise TrainingError(self._not_a_number(first or self.progress.step + 1, lr))
        self.progress.skipped += 1
        self._nonfinite = NonFinite(self._device)
        return False

    def _require_numbers(self, lr: float) -> None:
        """Refuse to go on, before weights are kept, with a loss that was not a number.

        Raises:
            TrainingError: if a loss since the last look was not a number.
        """
        first = self._nonfinite.first()
        if self.world.any(first is not None):
            raise TrainingError(self._not_a_number(first or self.progress.step, lr))

    def _not_a_number(self, step: int, lr: float) -> str:
        kept = "no checkpoint was made yet"
        if self._saved_step is not None:
            kept = f"the last good checkpoint is that of step {self._saved_step:,}"
        return (
            f"the loss is not a finite number at step {step:,} of {self.steps:,} (lr {lr:.3g}); {kept}. "
            "Lower train.lr or set train.clip_grad; train.on_nonfinite=skip leaves such steps out"
        )

    def _save(self, *names: str) -> None:
        """Keep the state under each of ``names``; gathered once, since all processes must."""
        state = self.state()
        weights = state["ema"] or state["model"]
        if self.world.main:
            for name in names:
                self.hooks.save(name, weights, state)
        if "last" in names:
            self._saved_step = self.progress.step

    def _finish_epoch(self, epoch: int, samples_per_second: float) -> None:
        """Evaluate the epoch, hand out its rows, and save; the best epoch's weights under ``best``, too."""
        rate = learning_rate(self.progress.step - 1, self.steps_per_epoch, self.settings)
        count, loss, auxiliary, *sums = self.world.sum(self._sums.cpu()).tolist()
        self._sums.zero_()
        self._require_numbers(rate)
        if not count:
            raise TrainingError(f"every step of epoch {epoch + 1} was skipped: no loss was a finite number")
        checked = self._validate()
        if not math.isfinite(checked.loss):
            raise TrainingError(self._not_a_number(self.progress.step, rate))
        self._validation = checked
        shared = {"epoch": epoch + 1, "step": self.progress.step}
        timing = {
            f"{self.unit}_per_second": round(samples_per_second, 1),
            "seconds": round(self.progress.seconds, 3),
        }
        trained = dict(split="train", loss=loss / count, auxiliary_loss=auxiliary / count)
        trained |= self.objective.measures(sums, count)
        found = dict(split=self.chosen_on, loss=checked.loss, auxiliary_loss=checked.auxiliary_loss, **checked.measures)
        if self.world.main:
            self.hooks.on_epoch([{**shared, **row, "lr": rate, **timing} for row in (trained, found)])
        if self._is_better(checked):
            self.progress.best_loss, self.progress.best_measures = checked.loss, checked.measures
            self.progress.best_epoch = epoch + 1
            self._save("best", *self._kept(epoch + 1), "last")
        else:
            self._save(*self._kept(epoch + 1), "last")

    def _is_better(self, checked: Checked) -> bool:
        """Return whether an epoch is better than the best so far."""
        best, merit = self.progress, self.objective.merit
        return not best.best_epoch or merit(checked.loss, checked.measures) > merit(best.best_loss, best.best_measures)

    def _kept(self, epoch: int) -> list[str]:
        """Return the name to keep an epoch's weights under, where the recipe says to keep them."""
        every = self.settings.keep_every
        return [kept_name(epoch)] if every and (epoch % every == 0 or epoch == self.settings.epochs) else []

    def _validate(self) -> Checked:
        """Evaluate this process's part, in float32 as ``kattn eval`` does; every process returns the whole's result."""
        model = self.ema.module if self.ema else self.model
        # Every size-th sample, so that the parts differ by one in length at most.
        own = torch.arange(len(self.validation), device="cpu")[self.world.rank :: self.world.size]
        split = self.validation if self.world.size == 1 else self.validation.subset(own.to(self._device))
        with whole(self.model):
            return self.objective.evaluate(model, split, gather=self.world.gather)
