"""How long an attack will take at most, told before it begins."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from kattn_cli.attacks import ATTACKS
from kattn_cli.attacks.gradient import loss_gradient
from kattn_cli.commands.attack.plan import Planned
from kattn_cli.models import Classifier

TRIED = 64
"""Images that the passes are timed on."""


def seconds_an_image(model: Classifier, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """Seconds of a forward pass and of the backward pass that follows it, an image."""
    images, labels = images[:TRIED], labels[:TRIED]

    @torch.no_grad()
    def forward() -> None:
        model(images)

    def both() -> None:
        loss_gradient(model, images, labels)

    times = []
    for run in (forward, both):
        run()
        _wait(images.device)
        started = time.perf_counter()
        run()
        _wait(images.device)
        times.append((time.perf_counter() - started) / len(images))
    return times[0], max(0.0, times[1] - times[0])


def estimate(planned: Sequence[Planned], images: int, passes: tuple[float, float]) -> dict[str, float]:
    """Seconds that each attack takes at most, all its budgets together; most attacks take less than the passes allow.

    Args:
        passes: seconds of a forward and of a backward pass, an image.
    """
    seconds: dict[str, float] = {}
    for one in planned:
        need = ATTACKS[one.attack].passes(one.settings)
        an_image = need.forward * passes[0] + need.backward * passes[1]
        seconds[one.attack] = seconds.get(one.attack, 0.0) + images * one.restarts * an_image
    return seconds


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
