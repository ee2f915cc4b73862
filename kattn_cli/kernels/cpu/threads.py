"""Call a C kernel on parts of its work, one a thread: a foreign call leaves the interpreter to the others."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from kattn_cli.kernels.cpu import build

Part = tuple[int, ...]
Argument = Tensor | int | None


def call(name: str, dtype: torch.dtype, parts: Sequence[Part], *arguments: Argument) -> None:
    """``name`` for the type, on each part: a struct of longs, then pointers to the tensors (contiguous) and numbers."""
    function = build.function(f"{name}_{'double' if dtype == torch.float64 else 'float'}")
    pointers = [_pointer(argument) for argument in arguments]

    def run(part: Part) -> None:
        function(ctypes.byref((ctypes.c_long * len(part))(*part)), *pointers)

    waiting = [_pool(len(parts)).submit(run, part) for part in parts[1:]]
    run(parts[0])
    for one in waiting:
        one.result()


def shares(count: int) -> list[tuple[int, int]]:
    """``count`` things in consecutive shares, one for each of torch's threads."""
    threads = max(1, min(count, torch.get_num_threads()))
    edges = [count * k // threads for k in range(threads + 1)]
    return list(pairwise(edges))


def _pointer(argument: Argument) -> object:
    if argument is None:
        return None
    if isinstance(argument, int):
        return ctypes.byref(ctypes.c_long(argument))
    assert argument.is_contiguous()
    return ctypes.c_void_p(argument.data_ptr())


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="kattn")


os.register_at_fork(after_in_child=_pool.cache_clear)
