"""Call a C kernel on parts of its work, one a thread: those of OpenMP, which are torch's own where it brings it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.kernels import compile_c as build

Part = tuple[int, ...]


class Strided(NamedTuple):
    """A tensor that need not be contiguous, whose strides the kernel gets as arguments of their own."""

    tensor: Tensor


Argument = Tensor | Strided | int | None


def call(name: str, dtype: torch.dtype, parts: Sequence[Part], *arguments: Argument) -> None:
    """Call ``name`` for the type on each part: structs of longs, their number, then contiguous tensors and numbers.

    Raises:
        ValueError: if a tensor that is not :class:`Strided` is not contiguous.
    """
    function = build.function(f"{name}_{'double' if dtype == torch.float64 else 'float'}")
    flat = [number for part in parts for number in part]
    function((ctypes.c_long * len(flat))(*flat), *(_pointer(one) for one in (len(parts), *arguments)))


def shares(count: int) -> list[tuple[int, int]]:
    """Return the bounds of consecutive shares of ``count`` things, one for each of torch's threads."""
    threads = max(1, min(count, torch.get_num_threads()))
    edges = [count * k // threads for k in range(threads + 1)]
    return list(pairwise(edges))


def _pointer(argument: Argument) -> object:
    if argument is None:
        return None
    if isinstance(argument, int):
        return ctypes.byref(ctypes.c_long(argument))
    if isinstance(argument, Strided):
        return ctypes.c_void_p(argument.tensor.data_ptr())
    if not argument.is_contiguous():
        raise ValueError(f"C kernels read contiguous tensors, got {tuple(argument.shape)} by {argument.stride()}")
    return ctypes.c_void_p(argument.data_ptr())
