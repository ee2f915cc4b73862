"""The training loop: one epoch after the other, each step a function of the seed and its number."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.data import ImageData, Split
from kattn_cli.errors import TrainingError
from kattn_cli.models import Classifier, auxiliary_loss
from kattn_cli.recipe import Train
from kattn_cli.training.augment import random_crop
from kattn_cli.training.evaluate import evaluate, topk_correct
from kattn_cli.training.interrupt import Interruption, catch_interruption
from kattn_cli.training.optim import build_optimizer, learning_rate, set_learning_rate
from kattn_cli.training.seed import Stream, generator, seed_torch

METRICS = (
    "epoch",
    "step",
    "split",
    "loss",
    "auxiliary_loss",
    "top1",
    "top5",
    "lr",
    "images_per_second",
    "seconds",
)


@dataclass
class Progress:
    """Where a training stands; ``sums`` are those of the epoch in hand."""

    step: int = 0
    seconds: float = 0.0
    best_top1: float = -1.0
    best_loss: float = math.inf
    best_epoch: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)


@dataclass(frozen=True)
class Update:
    """What a progress bar shows; ``loss`` is a tensor, so that only a bar that is drawn waits for it."""

    step: int
    steps: int
    epoch: int
    loss: Tensor
    validation_top1: float | None
    images_per_second: float


@dataclass(frozen=True)
class Hooks:
    """What the loop tells the outside: each step, each epoch's rows, and when to keep what."""

    on_step: Callable[[Update], None]
    on_epoch: Callable[[list[dict[str, Any]]], None]
    save: Callable[[str, dict[str, Any]], None]


class Interrupted(Exception):
    """The user stopped the training; the state at ``step`` was kept."""

    def __init__(self, step: int, epoch: int, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} after step {step:,} (epoch {epoch})")
        self.step, self.epoch, self.signal = step, epoch, number


class Trainer:
    """Trains ``model`` on the training split, choosing the best epoch on the validation split."""

    def __init__(self, model: Classifier, data: ImageData, settings: Train, seed: int, hooks: Hooks) -> None:
        device = model.mean.device
        self.model, self.settings, self.seed, self.hooks = model, settings, seed, hooks
        self.train_split: Split = data.splits["train"].to(device)
        self.validation: Split = data.splits["validation"].to(device)
        self.optimizer = build_optimizer(model, settings)
        self.progress = Progress()
        self.steps_per_epoch = math.ceil(len(self.train_split) / settings.batch_size)
        self.steps = self.steps_per_epoch * settings.epochs
        self._sums = torch.zeros(4, dtype=torch.float64, device=device)  # loss, auxiliary, top-1, top-5
        self._validation_top1: float | None = None

    def state(self) -> dict[str, Any]:
        """All that :meth:`restore` needs to go on from here."""
        self.progress.sums = self._sums.tolist()
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": asdict(self.progress),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a :meth:`state`."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])
        self._sums.copy_(torch.tensor(self.progress.sums, dtype=torch.float64))

    def run(self) -> Progress:
        """Train to the end.

        Raises:
            Interrupted: after SIGINT or SIGTERM, once the step in hand is done and the state kept.
            TrainingError: if the loss of an epoch is not a finite number.
        """
        with catch_interruption() as interruption:
            while self.progress.step < self.steps:
                self._run_epoch(interruption)
                self._stop_if_asked(interruption)
        return self.progress

    def _run_epoch(self, interruption: Interruption) -> None:
        epoch = self.progress.step // self.steps_per_epoch
        order = torch.randperm(len(self.train_split), generator=generator(self.seed, Stream.ORDER, epoch))
        order = order.to(self._sums.device)
        started, seen = time.perf_counter(), 0
        before = self.progress.seconds
        self.model.train()
        while self.progress.step < (epoch + 1) * self.steps_per_epoch:
            position = self.progress.step - epoch * self.steps_per_epoch
            chosen = order[position * self.settings.batch_size :][: self.settings.batch_size]
            loss = self._step(self.train_split.images[chosen], self.train_split.labels[chosen])
            seen += len(chosen)
            elapsed = time.perf_counter() - started
            self.progress.step += 1
            self.progress.seconds = before + elapsed
            self.hooks.on_step(
                Update(self.progress.step, self.steps, epoch + 1, loss, self._validation_top1, seen / elapsed)
            )
            if interruption.signal is not None and position + 1 < self.steps_per_epoch:
                self.hooks.save("last", self.state())
                self._stop_if_asked(interruption)
        self._finish_epoch(epoch, seen / (time.perf_counter() - started))

    def _stop_if_asked(self, interruption: Interruption) -> None:
        """Once the state is saved; a training that is complete is not stopped any more."""
        step = self.progress.step
        if interruption.signal is not None and step < self.steps:
            raise Interrupted(step, math.ceil(step / self.steps_per_epoch), interruption.signal)

    def _step(self, images: Tensor, labels: Tensor) -> Tensor:
        step = self.progress.step
        seed_torch(self.seed, Stream.STEP, step)
        set_learning_rate(self.optimizer, learning_rate(step, self.steps_per_epoch, self.settings))
        if self.settings.crop_padding:
            images = random_crop(images, self.settings.crop_padding)
        logits = self.model(images)
        task = F.cross_entropy(logits, labels, label_smoothing=self.settings.label_smoothing)
        auxiliary = auxiliary_loss(self.model)
        self.optimizer.zero_grad()
        (task + auxiliary).backward()
        if self.settings.clip_grad:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_grad)
        self.optimizer.step()
        count = len(labels)
        with torch.no_grad():
            correct = [topk_correct(logits, labels, k).double().sum() for k in (1, 5)]
            self._sums += torch.stack([task.double() * count, auxiliary.double() * count, *correct])
        return task.detach()

    def _finish_epoch(self, epoch: int, images_per_second: float) -> None:
        count = len(self.train_split)
        loss, auxiliary, top1, top5 = (self._sums / count).tolist()
        self._sums.zero_()
        rate = learning_rate(self.progress.step - 1, self.steps_per_epoch, self.settings)
        if not math.isfinite(loss + auxiliary):
            raise TrainingError(
                f"the loss is not a finite number in epoch {epoch + 1} (loss {loss}, auxiliary {auxiliary}, "
                f"lr {rate:.3g}); the checkpoint of epoch {epoch} is kept"
            )
        checked = evaluate(self.model, self.validation)
        self._validation_top1 = checked.top1
        shared = {"epoch": epoch + 1, "step": self.progress.step}
        timing = {
            "images_per_second": round(images_per_second, 1),
            "seconds": round(self.progress.seconds, 3),
        }
        train_row = dict(split="train", loss=loss, auxiliary_loss=auxiliary, top1=100 * top1, top5=100 * top5, lr=rate)
        validation_row = dict(
            split="validation",
            loss=checked.loss,
            auxiliary_loss=checked.auxiliary_loss,
            top1=checked.top1,
            top5=checked.top5,
            lr=rate,
        )
        self.hooks.on_epoch([{**shared, **train_row, **timing}, {**shared, **validation_row, **timing}])
        if (checked.top1, -checked.loss) > (self.progress.best_top1, -self.progress.best_loss):
            self.progress.best_top1, self.progress.best_loss = checked.top1, checked.loss
            self.progress.best_epoch = epoch + 1
            self.hooks.save("best", self.state())
        self.hooks.save("last", self.state())
