"""Every kernel compiles for a GPU where there is none: the interpreter runs much that a compiler refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.slow
POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float64: "*fp64", torch.uint8: "*u8"}
Launch = tuple[Any, dict[str, Any], dict[str, Any]]


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Launch]:
    """What is launched, which launches nothing: each function, its arguments and its options."""
    pytest.importorskip("triton")
    from triton.runtime.jit import JITFunction

    found: list[Launch] = []

    def record(function: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> None:
        options = {"num_warps": named.pop("num_warps")}
        found.append((function, function.signature.bind(*args, **named).arguments, options))

    monkeypatch.setattr(JITFunction, "run", record)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    return found


def binary(function: Any, arguments: dict[str, Any], options: dict[str, Any]) -> bytes:
    """The kernel as an H200 would run it."""
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, constants, aligned = {}, {}, {}
    for place, parameter in enumerate(function.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr:
            signature[parameter.name], constants[parameter.name] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[parameter.name], aligned[place,] = POINTERS[value.dtype], [["tt.divisibility", 16]]
        else:
            signature[parameter.name] = "i32"
    source = ASTSource(function, signature, constants, aligned)
    return compiled(source, target=GPUTarget("cuda", 90, 32), options=options).asm["cubin"]


def tssa(w: torch.Tensor, eta: torch.Tensor, mask: torch.Tensor) -> None:
    from kattn_cli.kernels.tssa import triton as kernels

    _, energy, membership, norms, shrinkage, mass = kernels.forward(w, eta, mask, True)
    kernels.backward(w, w, eta, mask, energy, membership, norms, shrinkage, mass, True)


def causal_tssa(w: torch.Tensor, eta: torch.Tensor, mask: torch.Tensor) -> None:
    from kattn_cli.kernels.causal_tssa import triton as kernels

    bias = torch.zeros(1, 8, 200)
    _, *saved = kernels.forward(w, eta, bias, mask, True, 1)
    kernels.backward(w, w, eta, bias, mask, True, 1, *saved)


@pytest.mark.parametrize(("operator", "kernels"), [(tssa, 6), (causal_tssa, 8)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_compiles(launches: list[Launch], operator: Callable[..., None], kernels: int, dtype: torch.dtype) -> None:
    operator(torch.zeros(1, 200, 8, 48, dtype=dtype), torch.ones(8), torch.ones(1, 200, dtype=torch.bool))
    assert len({launch[0] for launch in launches}) == kernels
    assert all(binary(*launch) for launch in launches)
