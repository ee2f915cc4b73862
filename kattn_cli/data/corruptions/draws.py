"""Random numbers, drawn on the CPU, so that every device gets the same."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def no_draws(images: Tensor, parameters: Any, generator: torch.Generator) -> None:
    """For types in which nothing is random."""


def uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> Tensor:
    """In [low, high), float64."""
    return torch.empty(shape, dtype=torch.float64).uniform_(low, high, generator=generator)
