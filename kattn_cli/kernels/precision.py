"""Where half precision would not do: sums over many tokens, exponentials, iterated inverses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

P = ParamSpec("P")
R = TypeVar("R")


def exact_dtype(z: Tensor) -> torch.dtype:
    """Return float32, or float64 for a ``z`` in float64."""
    return torch.promote_types(z.dtype, torch.float32)


def exact(z: Tensor) -> Tensor:
    """Return ``z`` in float32 or better."""
    return z.to(exact_dtype(z))


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return a block in which matrix products are as exact as their factors."""
    return torch.autocast(device.type, enabled=False) if _has_autocast(device.type) else nullcontext()


@torch.compiler.assume_constant_result
def _has_autocast(kind: str) -> bool:
    """Return whether a kind has autocast: to torch.compile, which in torch 2.8 cannot trace this, a constant."""
    return torch.amp.is_autocast_available(kind)


def full_precision(function: Callable[Concatenate[Tensor, P], R]) -> Callable[Concatenate[Tensor, P], R]:
    """Run a function of a tensor, and others on its device, without autocast, which would halve its products."""

    @wraps(function)
    def wrapped(z: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with without_autocast(z.device):
            return function(z, *args, **kwargs)

    return wrapped


def exactly(function: Callable[Concatenate[Tensor, P], Tensor]) -> Callable[Concatenate[Tensor, P], Tensor]:
    """Run equations in float32 or better, whatever their tensors' types; the result has the first tensor's type.

    For slow versions: a truth in half precision would round, and overflow, after every operation.
    """

    @wraps(function)
    def wrapped(z: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> Tensor:
        others, options = tree_map_only(Tensor, _exact_numbers, (args, kwargs))
        with without_autocast(z.device):
            return function(exact(z), *others, **options).to(z.dtype)

    return wrapped


def _exact_numbers(z: Tensor) -> Tensor:
    return exact(z) if z.is_floating_point() else z
