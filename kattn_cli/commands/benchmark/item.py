"""What an item of the benchmark gets and finds: a place to measure, and values that are held to bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from kattn_cli.attention.options import build_attention
from kattn_cli.costs.memory import peak_memory
from kattn_cli.costs.roofline import Ceilings
from kattn_cli.costs.timing import Program, Times, in_turns
from kattn_cli.kernels.choice import operators
from kattn_cli.runs.csv_rows import Row
from kattn_cli.training.seed import Stream, seed_torch

DIM, HEADS = 384, 8
"""ToST-S's, the width of the ToST paper's Figure 6."""


class Check(NamedTuple):
    """A value with its 95 % interval, the bound it is to keep, if any, and what it is, in words."""

    quantity: str
    ours: str
    against: str
    value: float
    low: float
    high: float
    relation: Literal["at least", "at most"]
    bound: float | None
    says: str

    @property
    def holds(self) -> str:
        """``yes`` or ``no``, by the value itself; empty without a bound."""
        if self.bound is None:
            return ""
        return "yes" if (self.value >= self.bound) == (self.relation == "at least") else "no"


class Outcome(NamedTuple):
    """What an item found: rows of measurements, and values that are held to bounds."""

    rows: list[Row]
    checks: list[Check]


@dataclass(frozen=True)
class Place:
    """A device and a precision, what they can do at most, and how long to measure there."""

    device: torch.device
    dtype: torch.dtype
    ceilings: Ceilings
    rounds: int
    seconds: float
    on_turn: Callable[[str], None]

    def in_turns(self, programs: Mapping[str, Program]) -> Times:
        """Return the milliseconds a call of each program, one a round."""
        return in_turns(programs, self.device, rounds=self.rounds, seconds=self.seconds, on_turn=self.on_turn)

    def peak_memory(self, program: Program) -> float:
        """Return the peak MiB of a call.

        On a GPU of the second: the first allocates what libraries keep and compilers try out.
        """
        if self.device.type == "cuda":
            program()
        return peak_memory(program, self.device)

    @property
    def itemsize(self) -> int:
        """The bytes of an entry."""
        return self.dtype.itemsize

    def draw(self, *shape: int) -> Tensor:
        """Return standard normal numbers, drawn on the CPU so that they are the same for every device."""
        return torch.randn(shape).to(self.device, self.dtype)

    def heads(self, batch: int, tokens: int, count: int = 1, dim: int = DIM, heads: int = HEADS) -> tuple[Tensor, ...]:
        """Return ``count`` tensors ``(B, H, N, d)``, laid out as a projection to ``count·C`` leaves them."""
        return self.draw(batch, tokens, count, heads, dim // heads).permute(2, 0, 3, 1, 4).unbind(0)

    def mechanism(
        self, name: str, tokens: int, *, dim: int = DIM, heads: int = HEADS, causal: bool = False, **options: Any
    ) -> nn.Module:
        """Return a mechanism with its projections."""
        seed_torch(0, Stream.COMPLEXITY, tokens)
        module = build_attention(name, options, dim=dim, heads=heads, seq_len=tokens, causal=causal)
        return module.to(self.device, self.dtype)

    def trained(self, module: nn.Module, batch: int, tokens: int, dim: int = DIM) -> Program:
        """Return the forward and backward pass of a module, to its input and its parameters."""
        return forward_backward(lambda x: module(x), [self.draw(batch, tokens, dim)], module.parameters())


def forward_backward(
    function: Callable[..., Tensor | tuple[Tensor, ...]], inputs: Iterable[Tensor], parameters: Iterable[Tensor] = ()
) -> Program:
    """Return a program: the function and the gradients of its inputs and ``parameters``.

    The gradients of its outputs are fixed and lie in memory as the outputs do, so that no version has to copy them.
    """
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    wanted = [*leaves, *parameters]

    def outputs() -> tuple[Tensor, ...]:
        found = function(*leaves)
        return found if isinstance(found, tuple) else (found,)

    ramps = [(out, torch.linspace(-1, 1, out.numel()).reshape(out.shape)) for out in outputs()]
    cotangents = [torch.empty_like(out).copy_(ramp) for out, ramp in ramps]
    return lambda: torch.autograd.grad(outputs(), wanted, cotangents, allow_unused=True)


def by_version(program: Program, version: str) -> Program:
    """Return the program with every operator in this version."""

    def run() -> object:
        with operators(version):
            return program()

    return run
