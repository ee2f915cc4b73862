"""Kernels in Triton run on the CPU by Triton's interpreter; ``-m gpu`` runs the same tests compiled, on a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

KERNELS = "kattn_cli.kernels."
Interpret = Callable[[str], ModuleType]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Where a kernel runs: interpreted on the CPU, or compiled. A test for a GPU alone must say ``cuda``."""
    pytest.importorskip("triton")
    return request.param


@pytest.fixture
def kernels_of(device: str, request: pytest.FixtureRequest) -> Interpret:
    """``kernels_of(name)`` gives a module whose kernels run on ``device``."""
    return import_module if device == "cuda" else request.getfixturevalue("interpret")


@pytest.fixture
def interpret(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpret]:
    """``interpret(name)`` gives a module with its kernels, and those it uses, interpreted.

    Triton decides when it decorates a function whether it will be interpreted. By then somebody else may have
    imported it, and decorated its own functions for a GPU: so they are replaced for the length of a test.
    """
    pytest.importorskip("triton")
    import triton.language as tl
    from triton.runtime import interpreter
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    language = (tl, tl.core, tl.math, tl.standard, tl.tensor, tl.dtype)
    before = [(part, dict(vars(part))) for part in language]
    # a call of one function by another takes milliseconds, for Triton changes its language anew: once will do
    monkeypatch.setattr(InterpretedFunction, "__call__", lambda called, *args, **more: called.rewrite()(*args, **more))
    interpreted: dict[int, InterpretedFunction] = {}

    def replace(module: ModuleType) -> None:
        for name, value in list(vars(module).items()):
            if isinstance(value, JITFunction):
                # one function under two names stays one: Triton knows its own by identity
                monkeypatch.setattr(module, name, interpreted.setdefault(id(value), InterpretedFunction(value.fn)))

    def module_of(name: str) -> ModuleType:
        module = import_module(name)  # before the variable is set, which would stay with what it decorates
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        ours = [found for known, found in sys.modules.items() if known.startswith(KERNELS)]
        for each in (tl, tl.standard, *ours):
            replace(each)
        interpreter._patch_lang(tl.sum.fn)
        return module

    yield module_of
    monkeypatch.undo()
    for part, members in before:
        restore(part, members)


def restore(part: Any, members: dict[str, Any]) -> None:
    """Put back what the interpreter left changed in Triton's language, which compiles nothing then."""
    if isinstance(part, type):  # what a module gained is kept: functions rewritten for the interpreter refer to it
        for name in [name for name in vars(part) if name not in members]:
            delattr(part, name)
    for name, member in members.items():
        if vars(part).get(name) is not member:
            setattr(part, name, member)
