"""Operations of a whole model's forward pass: torch's count, with each mechanism's by its own formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.kernels.choice import operators


@dataclass(frozen=True)
class ModelFlops:
    """Of one sample, a multiplication and an addition counting as two.

    ``matrix_products``: what torch's counter sees, matrix products and convolutions. ``flops``: the same outside the
    mechanisms, and theirs by ``flops(n)``, which also counts the softmax, sums over tokens and elementwise work.
    Norms, activations and residual sums outside the mechanisms are counted nowhere. ``formulas``: how many modules
    were counted by formula; the others, somebody's own without ``flops(n)``, by torch's counter.
    """

    flops: int
    matrix_products: int
    formulas: int


def model_flops(model: nn.Module, sample: Tensor) -> ModelFlops:
    """Count ``model(sample)``, for a batch of one on the device of both; on the meta device nothing is computed.

    A custom operator counts 0, so the plain version of each operator is counted, and of attention the unfused one.
    """
    counter = FlopCounterMode(display=False)
    with operators("plain"), sdpa_kernel(SDPBackend.MATH), torch.no_grad(), _tokens_seen(model) as seen, counter:
        model.eval()(sample)
    counts = counter.get_flop_counts()
    total = counter.get_total_flops()
    counted = sum(sum(counts[f"{type(model).__name__}.{name}"].values()) for name in seen)
    by_formula = sum(int(module.flops(n)) for module, n in seen.values())
    return ModelFlops(total - counted + by_formula, total, len(seen))


def model_flops_of(build: Callable[[], nn.Module], sample: Callable[[], Tensor]) -> ModelFlops:
    """As :func:`model_flops`, on the meta device, or where somebody's own mechanism does not run there, on the CPU."""
    try:
        with torch.device("meta"):
            return model_flops(build(), sample())
    except Exception:
        return model_flops(build(), sample())


@contextmanager
def _tokens_seen(model: nn.Module) -> Iterator[dict[str, tuple[Any, int]]]:
    """By name the modules that know their ``flops(n)``, with the number of tokens that each received."""
    seen: dict[str, tuple[Any, int]] = {}

    def note(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(module: nn.Module, args: tuple[Tensor, ...]) -> None:
            seen[name] = module, args[0].shape[1]

        return hook

    known = [(name, module) for name, module in model.named_modules() if hasattr(module, "flops")]
    hooks = [module.register_forward_pre_hook(note(name)) for name, module in known]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
