"""Gradient checkpointing of a block whose modules may keep statistics of their inputs, which count once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint


def checkpointed(block: nn.Module, *inputs: Tensor | None) -> Tensor:
    """Return ``block(*inputs)``, keeping only the inputs; the rest is computed again for the backward pass.

    Batch norm, and modules that are ``counting`` (experts, their load), note nothing the second time.
    """
    keepers = [each for each in block.modules() if isinstance(each, _BatchNorm) or hasattr(each, "counting")]
    return _noted_once(block, keepers, *inputs) if keepers else checkpoint(block, *inputs, use_reentrant=False)


@torch.compiler.disable
def _noted_once(block: nn.Module, keepers: Sequence[Any], *inputs: Tensor | None) -> Tensor:
    """Return the block's output, its statistics taken once; not compiled, since torch.compile refuses such contexts."""
    return checkpoint(block, *inputs, use_reentrant=False, context_fn=lambda: (nullcontext(), _unnoted(keepers)))


@contextmanager
def _unnoted(keepers: Sequence[Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for module in keepers:
            stack.enter_context(_unnoted_by_norm(module) if isinstance(module, _BatchNorm) else _uncounted(module))
        yield


@contextmanager
def _unnoted_by_norm(norm: Any) -> Iterator[None]:
    """Keep a batch norm's statistics as they are inside."""
    # A momentum of 0: without running statistics the norm would save other tensors than the first time.
    momentum, seen = norm.momentum, norm.num_batches_tracked
    before = None if seen is None else seen.clone()
    norm.momentum = 0.0
    try:
        yield
    finally:
        norm.momentum = momentum
        if before is not None:
            with torch.no_grad():
                seen.copy_(before)


@contextmanager
def _uncounted(module: Any) -> Iterator[None]:
    counting, module.counting = module.counting, False
    try:
        yield
    finally:
        module.counting = counting
