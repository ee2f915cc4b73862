"""What a machine can do at most, and what an operator must do at least: bytes moved, and operations of matrix products.

Source of the view: Williams, Waterman and Patterson 2009, "Roofline". N: tokens, C = H·d: width, B: batch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from kattn_cli.costs.timing import in_turns

COPIED = 2**28
"""Bytes of the tensor that is copied to measure bandwidth: more than any cache holds."""
PRODUCT = {"cpu": 2048, "cuda": 8192}
"""Side of the square matrices whose product measures the rate of operations."""


class Ceilings(NamedTuple):
    """What a machine does at most: bytes and operations a second."""

    bandwidth: float
    operations: float


class Work(NamedTuple):
    """Bytes that must be moved to and from memory, and floating-point operations of matrix products."""

    bytes: float
    operations: float = 0

    def milliseconds(self, ceilings: Ceilings) -> float:
        """Return the least time that the work can take: the longer of moving and calculating."""
        return 1e3 * max(self.bytes / ceilings.bandwidth, self.operations / ceilings.operations)


def ceilings(device: torch.device, dtype: torch.dtype, rounds: int, seconds: float) -> Ceilings:
    """Measure a copy within memory (read and written) and a product of square matrices; return the median rates.

    The matrices are random, as a model's are: on equal numbers a GPU takes less power, and may go faster.
    """
    source = torch.ones(COPIED // dtype.itemsize, dtype=dtype, device=device)
    target = torch.empty_like(source)
    side = PRODUCT[device.type]
    a, b, product = (torch.randn(side, side, device=device).to(dtype) for _ in range(3))
    programs = {"copy": lambda: target.copy_(source), "product": lambda: torch.matmul(a, b, out=product)}
    times = in_turns(programs, device, rounds=rounds, seconds=seconds)
    copy, multiply = (sorted(times[name])[rounds // 2] / 1e3 for name in programs)
    return Ceilings(2 * COPIED / copy, 2 * side**3 / multiply)


def tssa_work(entries: int, itemsize: int) -> Work:
    """Return the work of TSSA's operator, forward and backward, for ``entries`` = B·N·C.

    Each sum over tokens must be known before the next can begin, so ``w`` is read three times forward and three times
    backward, the gradient twice; the output and the gradient of ``w`` are written once.
    """
    return Work(10 * entries * itemsize)


def causal_tssa_work(entries: int, itemsize: int) -> Work:
    """Return the work of causal TSSA's operator, forward and backward, for ``entries`` = B·N·C.

    A scan has every sum at hand when it comes to a token; what couples the heads makes it two scans each way.
    """
    return Work(8 * entries * itemsize)


def primal_work(tokens: int, dim: int, heads: int, s: int, itemsize: int) -> Work:
    """Return the work of primal scores of both sides, forward and backward.

    q and k are read and scores written; then q, k, scores and their gradient are read and two gradients written.
    """
    scores = tokens * heads * 2 * s
    moved = (2 + 2 + 2) * tokens * dim + 3 * scores
    return Work(moved * itemsize, 3 * 2 * tokens * dim * 2 * s)


def attention_work(batch: int, tokens: int, dim: int, itemsize: int) -> Work:
    """Return the work of fused softmax attention.

    Two products of N × N × d a head forward, five backward, one of which is made again.
    """
    return Work((4 + 8) * batch * tokens * dim * itemsize, 7 * 2 * batch * tokens**2 * dim)


def projection_work(batch: int, tokens: int, dim: int, outputs: int, itemsize: int) -> Work:
    """Return the work of linear maps from ``dim`` to ``outputs`` in all: one product forward, two backward."""
    return Work(3 * batch * tokens * (dim + outputs) * itemsize, 3 * 2 * batch * tokens * dim * outputs)


def together(*parts: Work) -> Work:
    """Return the work of parts that are done one after the other."""
    return Work(sum(part.bytes for part in parts), sum(part.operations for part in parts))
