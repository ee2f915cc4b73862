"""What is done to a whole model when it is measured, each as the forward pass of a module: inference, a training step.

All compute in a recipe's ``precision``, and each knows the bytes that it holds between two calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from kattn_cli.data import LoadedData
from kattn_cli.models import AttentionModel
from kattn_cli.recipe.train import Train
from kattn_cli.training.loop import Hooks, Trainer
from kattn_cli.training.optim import build_optimizer
from kattn_cli.training.precision import autocast, grad_scaler


class Inference(nn.Module):
    """The model in ``eval`` mode, without gradients."""

    def __init__(self, model: nn.Module, precision: str) -> None:
        super().__init__()
        self.model, self.precision = model.eval(), precision

    @torch.no_grad()
    def forward(self, inputs: Any) -> Tensor:
        with autocast(self.precision, next(self.model.parameters()).device):
            return self.model(inputs)

    def held(self) -> int:
        """Bytes of the weights and buffers."""
        return _bytes(self.model.state_dict().values())


class TrainingStep(nn.Module):
    """One step of a recipe's training on the same synthetic batch: forward, loss, backward, optimizer.

    Mixing, auxiliary losses, clipping and the averaged weights are as ``train`` says; augmentation is left out.
    """

    def __init__(self, model: AttentionModel, data: LoadedData, train: Train, seed: int) -> None:
        super().__init__()
        hooks = Hooks(lambda update: None, lambda rows: None, lambda which, weights, state: None)
        self.trainer = Trainer(model.train(), data, train, seed, hooks)
        self.shards = next(iter(self.trainer.feed.shards(self.trainer.plan.batches(0))))

    def forward(self, inputs: Any) -> None:
        with torch.enable_grad():
            self.trainer.step(self.shards, self.trainer.settings.lr)
        self.trainer.optimizer.zero_grad()

    def held(self) -> int:
        """Bytes of the weights, AdamW's moments and the averaged weights."""
        average = self.trainer.ema.module.state_dict().values() if self.trainer.ema else ()
        weights = self.trainer.model.state_dict().values()
        return _bytes(weights) + _bytes(average) + _bytes(_moments(self.trainer.optimizer))


class DecoderStep(nn.Module):
    """One step of training a decoder to predict the next token: forward, cross-entropy, backward, AdamW."""

    def __init__(self, model: nn.Module, train: Train) -> None:
        super().__init__()
        self.model, self.train_settings = model.train(), train
        self.optimizer = build_optimizer(model, train)

    def forward(self, tokens: Tensor) -> None:
        device, precision = tokens.device, self.train_settings.precision
        scaler = grad_scaler(precision, device)
        with torch.enable_grad(), autocast(precision, device):
            logits = self.model(tokens)
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
            modules: list[Any] = list(self.model.modules())
            loss = loss + sum(each.auxiliary_loss() for each in modules if hasattr(each, "auxiliary_loss"))
        scaler.scale(loss).backward()
        scaler.step(self.optimizer)
        scaler.update()
        self.optimizer.zero_grad()

    def held(self) -> int:
        """Bytes of the weights and AdamW's moments."""
        return _bytes(self.model.state_dict().values()) + _bytes(_moments(self.optimizer))


def _moments(optimizer: Optimizer) -> Iterable[Tensor]:
    return (value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor))


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
