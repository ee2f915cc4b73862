"""AdamW and its learning rate."""

from __future__ import annotations

import math

import torch
from timm.optim import param_groups_weight_decay
from torch import nn

from kattn_cli.recipe.train import Train


def build_optimizer(model: nn.Module, settings: Train) -> torch.optim.AdamW:
    """AdamW; biases, norms and other vectors are not decayed."""
    groups = param_groups_weight_decay(model, settings.weight_decay)
    return torch.optim.AdamW(groups, lr=settings.lr, fused=True)


def learning_rate(step: int, steps_per_epoch: int, settings: Train) -> float:
    """At ``step`` (from 0): linear from ``warmup_lr`` to ``lr``, then a cosine to ``min_lr`` at the end."""
    warmup = settings.warmup_steps or settings.warmup_epochs * steps_per_epoch
    total = settings.epochs * steps_per_epoch
    if step < warmup:
        return settings.warmup_lr + (settings.lr - settings.warmup_lr) * (step + 1) / warmup
    share = 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))
    return settings.min_lr + (settings.lr - settings.min_lr) * share


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """The same rate for every group."""
    for group in optimizer.param_groups:
        group["lr"] = lr
