"""Parts of a training step: AdamW and its learning rate, mixed precision, ``torch.compile``, finite losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from timm.optim import param_groups_weight_decay
from torch import Tensor, nn

from kattn_cli.recipe.train import Train


def build_optimizer(model: nn.Module, settings: Train) -> torch.optim.AdamW:
    """Return AdamW that decays no biases, norms or other vectors."""
    groups = param_groups_weight_decay(model, settings.weight_decay)
    return torch.optim.AdamW(groups, lr=settings.lr, fused=True)


def learning_rate(step: int, steps_per_epoch: int, settings: Train) -> float:
    """Return the rate at ``step`` (from 0): linear from ``warmup_lr`` to ``lr``, then a cosine to ``min_lr``."""
    warmup = settings.warmup_steps or settings.warmup_epochs * steps_per_epoch
    total = settings.epochs * steps_per_epoch
    if step < warmup:
        # step + 1, so that the last step of the warm-up has the full rate.
        return settings.warmup_lr + (settings.lr - settings.warmup_lr) * (step + 1) / warmup
    # At least 1, where the warm-up is as long as the training.
    share = 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))
    return settings.min_lr + (settings.lr - settings.min_lr) * share


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Set the same rate for every group."""
    for group in optimizer.param_groups:
        group["lr"] = lr


DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return torch's autocast to ``bfloat16`` or ``float16``, or for ``float32`` a context that does nothing."""
    return torch.autocast(device.type, DTYPES[precision]) if precision in DTYPES else nullcontext()


def grad_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Return a scaler of the loss for float16, whose small gradients would vanish; elsewhere it changes nothing."""
    return torch.amp.GradScaler(device.type, enabled=precision == "float16")


def compiled(model: nn.Module, *, checkpointing: bool) -> Callable[[Tensor], Tensor]:
    """Return the forward pass of ``model``, compiled when it is first called.

    With gradient checkpointing, mechanisms whose auxiliary loss is read off the module (Primal-Attention) would break
    the graph, and DDP's cutting of graphs into buckets does not know checkpointed regions.
    """
    settings: Any = torch._dynamo.config
    if checkpointing:
        settings.optimize_ddp = False
        if hasattr(settings, "skip_fwd_side_effects_in_bwd_under_checkpoint"):
            settings.skip_fwd_side_effects_in_bwd_under_checkpoint = True
    return torch.compile(model)


CHECK_EVERY = 10
"""Steps between two looks at a GPU, which each wait for it."""

_NEVER = 2**62


class NonFinite:
    """Keeps, on the device, the number of the first step whose loss was not finite."""

    def __init__(self, device: torch.device) -> None:
        self.every = 1 if device.type == "cpu" else CHECK_EVERY
        self._first = torch.full((), _NEVER, dtype=torch.int64, device=device)

    def note(self, step: int, loss: Tensor) -> None:
        """Note the loss of ``step``, a scalar on the device."""
        # No ``if``: that would make the CPU wait for the device at every step.
        bad = torch.where(torch.isfinite(loss), _NEVER, step)
        torch.minimum(self._first, bad, out=self._first)

    def first(self) -> int | None:
        """Return the step that was noted first, or None; waits for the device."""
        step = int(self._first.item())
        return None if step == _NEVER else step
