"""Floating-point operations of a forward pass: by formulas, by torch's counter, and what the counter does not see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from kattn_cli.kernels.choice import operators

MOVES = {
    "unsafe_view", "reshape_copy", "clone", "copy", "to_copy", "contiguous", "lift_fresh", "repeat", "roll", "flip",
    "cat", "stack", "constant_pad_nd", "index", "index_select", "index_put", "gather", "scatter", "masked_fill",
    "where", "tril", "triu", "arange", "eye", "scalar_tensor", "empty", "empty_strided", "empty_like", "new_empty",
    "zeros", "zeros_like", "new_zeros", "zero", "ones", "ones_like", "new_ones", "full", "full_like", "new_full",
    "fill", "rand", "rand_like", "randn", "randn_like", "uniform", "normal", "bernoulli", "native_dropout",
}  # fmt: skip
"""Operations that copy, place, choose or draw numbers, and calculate none."""


@dataclass(frozen=True)
class Count:
    """Operations of a mechanism on one sample.

    ``formula``: by the mechanism's own, None where it has none. ``matrix_products``: by torch's counter.
    ``not_counted``: the operations called that torch's counter counts 0 for. ``parameters``: entries, all of them.
    """

    formula: int | None
    matrix_products: int
    not_counted: tuple[str, ...]
    parameters: int

    @property
    def flops(self) -> int:
        return self.matrix_products if self.formula is None else self.formula

    @property
    def how(self) -> str:
        """``formula`` or ``matrix products only``."""
        return "matrix products only" if self.formula is None else "formula"


def count_flops(module: nn.Module, n: int, dim: int) -> Count:
    """Count the operations of a forward pass of one sample of ``n`` tokens, on the module's device.

    A custom operator counts 0, so torch counts the plain version of each operator, and of attention the unfused one.
    On the meta device (:func:`count_without_running`) this takes neither time nor memory.
    """
    like = next(module.parameters(), torch.zeros(()))
    x = torch.zeros(1, n, dim, device=like.device, dtype=like.dtype)
    with _counting() as counter, _Uncounted() as seen:
        module(x)
    formula = int(module.flops(n)) if hasattr(module, "flops") else None  # type: ignore[operator]
    parameters = sum(parameter.numel() for parameter in module.parameters())
    return Count(formula, int(counter.get_total_flops()), tuple(seen.names), parameters)


def count_without_running(build: Callable[[], nn.Module], n: int, dim: int) -> Count | None:
    """Count as :func:`count_flops` on the meta device, where no size is too large.

    None where what ``build`` makes does not run there: a user's own mechanism may look at its numbers.
    """
    try:
        with torch.device("meta"):
            return count_flops(build(), n, dim)
    except Exception:
        return None


class _Uncounted(TorchDispatchMode):
    """Collect the names of operations that yield real numbers and have no formula in torch's counter."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, None] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::").strip("_").removeprefix("safe_")
        if func._overloadpacket not in flop_registry and not func.is_view and name not in MOVES and _is_real(out):
            self.names[name] = None
        return out


def _is_real(out: object) -> bool:
    return any(isinstance(leaf, Tensor) and leaf.is_floating_point() for leaf in tree_leaves(out))


@dataclass(frozen=True)
class ModelFlops:
    """Operations of a whole model on one sample, a multiplication and an addition counting as two.

    ``matrix_products``: what torch's counter sees, matrix products and convolutions. ``flops``: the same outside the
    mechanisms, and theirs by ``flops(n)``, which also counts the softmax, sums over tokens and elementwise work.
    Norms, activations and residual sums outside the mechanisms are counted nowhere. ``formulas``: how many modules
    were counted by formula; the others, a user's own without ``flops(n)``, by torch's counter.
    """

    flops: int
    matrix_products: int
    formulas: int


def model_flops(model: nn.Module, sample: Tensor) -> ModelFlops:
    """Count the operations of ``model(sample)``, a batch of one; on the meta device nothing is computed.

    A custom operator counts 0, so the plain version of each operator is counted, and of attention the unfused one.
    """
    with _tokens_seen(model) as seen, _counting() as counter:
        model.eval()(sample)
    counts = counter.get_flop_counts()
    total = counter.get_total_flops()
    counted = sum(sum(counts[f"{type(model).__name__}.{name}"].values()) for name in seen)
    by_formula = sum(int(module.flops(n)) for module, n in seen.values())
    return ModelFlops(total - counted + by_formula, total, len(seen))


def model_flops_of(build: Callable[[], nn.Module], sample: Callable[[], Tensor]) -> ModelFlops:
    """Count as :func:`model_flops` on the meta device or, where a user's mechanism does not run there, on the CPU."""
    return model_flops_without_running(build, sample) or model_flops(build(), sample())


def model_flops_without_running(build: Callable[[], nn.Module], sample: Callable[[], Tensor]) -> ModelFlops | None:
    """Count as :func:`model_flops` on the meta device; None where what ``build`` makes does not run there."""
    try:
        with torch.device("meta"):
            return model_flops(build(), sample())
    except Exception:
        return None


@contextmanager
def _counting() -> Iterator[FlopCounterMode]:
    """Count with torch's counter, which sees neither custom operators nor, on some devices, fused attention."""
    counter = FlopCounterMode(display=False)
    with operators("plain"), sdpa_kernel(SDPBackend.MATH), torch.no_grad(), counter:
        yield counter


@contextmanager
def _tokens_seen(model: nn.Module) -> Iterator[dict[str, tuple[Any, int]]]:
    """Collect the modules that know their ``flops(n)``, by name, with the number of tokens that each received."""
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
