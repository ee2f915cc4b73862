"""Mean and deviation over the inputs that something was measured on."""

from __future__ import annotations

import torch
from torch import Tensor


def mean_and_deviation(values: Tensor) -> tuple[Tensor, Tensor]:
    """Over the first axis, ``(B, …)`` to ``(…)`` twice, in float64; a single input deviates by 0."""
    values = values.double()
    return values.mean(0), values.std(0) if len(values) > 1 else torch.zeros_like(values[0])
