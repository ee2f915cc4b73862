"""Where half precision would not do: sums over many tokens, exponentials, iterated inverses."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def exact_dtype(z: Tensor) -> torch.dtype:
    """float32, or float64 for a ``z`` in float64."""
    return torch.promote_types(z.dtype, torch.float32)


def exact(z: Tensor) -> Tensor:
    """``z`` in float32 or better."""
    return z.to(exact_dtype(z))


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Matrix products as exact as their factors."""
    available = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if available else nullcontext()
