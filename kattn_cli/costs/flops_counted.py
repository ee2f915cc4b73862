"""Operations of a forward pass: by a mechanism's formula, by torch's counter, and what the counter does not see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """Of one sample: ``formula``, the mechanism's own, None where it has none; ``matrix_products``, torch's count.

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
    """Count a forward pass of one sample of ``n`` tokens, on the module's device and in its precision.

    A custom operator counts 0, so torch counts the plain version of each operator, and of attention the unfused one.
    On the meta device (:func:`count_without_running`) this takes neither time nor memory.
    """
    like = next(module.parameters(), torch.zeros(()))
    x = torch.zeros(1, n, dim, device=like.device, dtype=like.dtype)
    with (
        operators("plain"),
        sdpa_kernel(SDPBackend.MATH),
        torch.no_grad(),
        FlopCounterMode(display=False) as counter,
        _Uncounted() as seen,
    ):
        module(x)
    formula = int(module.flops(n)) if hasattr(module, "flops") else None  # type: ignore[operator]
    parameters = sum(parameter.numel() for parameter in module.parameters())
    return Count(formula, int(counter.get_total_flops()), tuple(seen.names), parameters)


def count_without_running(build: Callable[[], nn.Module], n: int, dim: int) -> Count | None:
    """As :func:`count_flops`, of what ``build`` makes on the meta device, so that no size is too large.

    None where it does not work there: somebody's own mechanism may look at its numbers.
    """
    try:
        with torch.device("meta"):
            return count_flops(build(), n, dim)
    except Exception:
        return None


class _Uncounted(TorchDispatchMode):
    """Notes the names of operations that yield real numbers and have no formula in torch's counter."""

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
