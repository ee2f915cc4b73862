"""Which version of an operator computes: the equations one after the other, torch's operations, or a kernel of ours.

``slow`` reads like the paper, ``plain`` gives the same numbers with fewer passes and less memory, and ``fast`` takes a
kernel made for the operator where there is one for the device and the size pays for the call, else ``plain``.
``KATTN_OPERATORS`` in the environment sets it for a whole program.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal, get_args

import torch
from torch import Tensor

from kattn_cli.errors import KattnError, did_you_mean
from kattn_cli.kernels import compile_c as build

Version = Literal["slow", "plain", "fast"]
VERSIONS: tuple[Version, ...] = get_args(Version)
VARIABLE = "KATTN_OPERATORS"
SMALL = 2**18
"""Entries below which calling a kernel costs a CPU more than it saves."""
WIDEST = 2**14
"""Numbers of one token that fit, a few times over, on the stack of a thread."""


def _named(name: str) -> Version:
    for known in VERSIONS:
        if name == known:
            return known
    raise KattnError(f"{VARIABLE}={name}: expected one of {', '.join(VERSIONS)}{did_you_mean(name, VERSIONS)}")


_version = _named(os.environ.get(VARIABLE, "fast"))


def version() -> Version:
    """Return the version in force: ``slow``, ``plain`` or ``fast``."""
    return _version


@contextmanager
def operators(chosen: str) -> Iterator[None]:
    """Make every operator inside the block compute in the version ``chosen``.

    Raises:
        KattnError: if it is none of these three.
    """
    global _version
    before, _version = _version, _named(chosen)
    try:
        yield
    finally:
        _version = before


def kernel_for(z: Tensor, columns: int = 1) -> bool:
    """Return whether a kernel of ours should compute on ``z``: Triton's on a GPU, one in C on a CPU.

    ``columns``: the numbers of one token that it must hold at once. Kernels are not made for tensors without entries.
    """
    if version() != "fast" or columns > WIDEST or not z.numel():
        return False
    if z.device.type == "cuda":
        return _has_triton()
    return z.device.type == "cpu" and z.numel() >= SMALL and build.available()


@torch.compiler.assume_constant_result
def _has_triton() -> bool:
    return find_spec("triton") is not None


def operator_for(z: Tensor) -> bool:
    """Return whether to use an operator that a CPU computes by torch's operations in place, without a compiler."""
    if z.device.type == "cpu":
        return version() == "fast" and z.numel() >= max(1, SMALL)
    return kernel_for(z)
