"""The mechanism that is probed: built, with weights that hide nothing, in as good a precision as it runs in.

B: batch, N: tokens, C: width.
"""

from __future__ import annotations

import copy
import inspect
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from kattn_cli.attention import attention_class
from kattn_cli.attention.options import build_attention
from kattn_cli.attention.user_file import one_line
from kattn_cli.errors import RecipeError
from kattn_cli.recipe.schema import Mechanism
from kattn_cli.training.seed import Stream, generator, seed_torch

BATCH, TOKENS, DIM, HEADS = 3, 25, 32, 4
MOVED = 0.05
"""The standard deviation by which every weight is moved, so that a projection that begins at 0 hides nothing."""
EXACT = {torch.float64: 1e-9, torch.float32: 1e-4}
"""The greatest share of the outputs' size that rounding makes of a difference that should be 0."""


@dataclass(frozen=True)
class Subject:
    """A mechanism by its name and options; see :mod:`~kattn_cli.commands.judge.probes`."""

    mechanism: Mechanism

    @property
    def name(self) -> str:
        """Return the name, as a recipe has it."""
        return self.mechanism.name

    @property
    def supports_causal(self) -> bool:
        """Return whether it says that it has a causal form."""
        return bool(getattr(attention_class(self.name), "supports_causal", False))

    @property
    def takes_mask(self) -> bool:
        """Return whether its forward pass takes padding."""
        return "mask" in inspect.signature(attention_class(self.name).forward).parameters

    @cached_property
    def dtype(self) -> torch.dtype:
        """Return float64, or float32 if it does not run in that.

        Raises:
            RecipeError: if it runs in neither, or does not fit the contract.
        """
        _check_contract(self.name, self.untouched(), torch.randn(BATCH, TOKENS, DIM))
        with suppress(Exception):
            with torch.no_grad():
                self.untouched().double()(torch.randn(BATCH, TOKENS, DIM, dtype=torch.float64))
            return torch.float64
        return torch.float32

    @property
    def exact(self) -> float:
        """Return the share of the outputs' size that counts as nothing."""
        return EXACT[self.dtype]

    def untouched(self, causal: bool = False) -> nn.Module:
        """Return it as its constructor leaves it, in float32 and ``eval`` mode.

        Raises:
            RecipeError: if the constructor refuses, in its own words.
        """
        seed_torch(0, Stream.PROBE)
        sizes = {"dim": DIM, "heads": HEADS, "seq_len": TOKENS}
        return build_attention(self.name, self.mechanism.options, **sizes, causal=causal).eval()

    @torch.no_grad()
    def built(self, causal: bool = False) -> nn.Module:
        """Return it with every weight moved a little, in :attr:`dtype` and ``eval`` mode.

        Raises:
            RecipeError: if the constructor refuses, in its own words.
        """
        module = self.untouched(causal).to(self.dtype)
        draws = generator(0, Stream.PROBE, 1)
        for parameter in module.parameters():
            parameter.add_(MOVED * torch.randn(parameter.shape, generator=draws).to(parameter))
        return module

    def inputs(self, number: int = 0, *shape: int) -> Tensor:
        """Return standard normal inputs, ``(B, N, C)`` unless another shape is asked for; each number others."""
        draws = generator(0, Stream.PROBE, 2 + number)
        return torch.randn(shape or (BATCH, TOKENS, DIM), generator=draws, dtype=torch.float64).to(self.dtype)


@torch.no_grad()
def outputs(module: nn.Module, x: Tensor, *mask: Tensor, seed: int = 0) -> Tensor:
    """Return a copy of the module's outputs with the same random draws for the same seed; the module stays as it is."""
    seed_torch(seed, Stream.PROBE, 1000)
    return copy.deepcopy(module)(x, *mask).detach().clone()


def moved(before: Tensor, after: Tensor) -> float:
    """Return the greatest difference as a share of the outputs' root mean square; infinite if not a number."""
    size = before.double().square().mean().sqrt().clamp(min=torch.finfo(torch.float32).tiny)
    share = float((after - before).double().abs().max() / size)
    return share if share == share else float("inf")


def _check_contract(name: str, module: nn.Module, x: Tensor) -> None:
    try:
        with torch.no_grad():
            found: Any = module(x)
    except Exception as error:
        why = f"does not fit the contract, forward(x) for x {_shape(x)}: {one_line(error)}"
        raise RecipeError(f"{name}: {why}") from error
    if not isinstance(found, Tensor) or found.shape != x.shape:
        got = _shape(found) if isinstance(found, Tensor) else type(found).__name__
        raise RecipeError(f"{name}: does not fit the contract: forward(x) for x {_shape(x)} gives {got}, not the same")
    if not bool(found.isfinite().all()):
        raise RecipeError(f"{name}: outputs of standard normal inputs are not numbers")


def _shape(x: Tensor) -> str:
    return f"({', '.join(map(str, x.shape))})"
