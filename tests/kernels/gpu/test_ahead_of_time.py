"""Every kernel compiles for a GPU where there is none: the interpreter runs much that a compiler refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.slow
POINTERS = {
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
    torch.float64: "*fp64",
    torch.uint8: "*u8",
    torch.int8: "*i8",
}
SHARED = 227 * 2**10
"""Bytes of shared memory that a program may take on an H100 or H200."""
OPTIONS = ("num_warps", "num_stages", "enable_fp_fusion")
Launch = tuple[Any, dict[str, Any], dict[str, Any]]
Size = tuple[int, int, int, int]
"""``(B, N, H, d)``."""


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Launch]:
    """What is launched, which launches nothing: each function, its arguments and its options."""
    pytest.importorskip("triton")
    from triton.runtime.jit import JITFunction

    found: list[Launch] = []

    def record(function: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> None:
        options = {name: named.pop(name) for name in OPTIONS if name in named}
        found.append((function, function.signature.bind(*args, **named).arguments, options))

    monkeypatch.setattr(JITFunction, "run", record)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    return found


def compile_launch(function: Any, arguments: dict[str, Any], options: dict[str, Any]) -> Any:
    """The kernel as an H100 or H200 would run it: a number that is 1 is a constant, unless the kernel refuses that."""
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
        elif value == 1 and not parameter.do_not_specialize:
            signature[parameter.name], constants[parameter.name] = "constexpr", 1
        else:
            signature[parameter.name] = "i32"
    source = ASTSource(function, signature, constants, aligned)
    return compiled(source, target=GPUTarget("cuda", 90, 32), options=options)


def tssa(size: Size, dtype: torch.dtype) -> None:
    from kattn_cli.kernels.tssa import triton as kernels

    w, eta, mask = draw(size, dtype)
    _, energy, membership, norms, shrinkage, mass = kernels.forward(w, eta, mask, True)
    kernels.backward(w, w, eta, mask, energy, membership, norms, shrinkage, mass, True)


def causal_tssa(size: Size, dtype: torch.dtype) -> None:
    from kattn_cli.kernels.causal_tssa import triton as kernels

    w, eta, mask = draw(size, dtype)
    bias = torch.zeros(1, size[2], size[1])
    _, *saved = kernels.forward(w, eta, bias, mask, True, 1)
    kernels.backward(w, w, eta, bias, mask, True, 1, *saved)


def primal(size: Size, dtype: torch.dtype) -> None:
    from kattn_cli.kernels.primal import triton as kernels

    samples, tokens, heads, width = size
    q, k = torch.zeros(samples, tokens, 2, heads, width, dtype=dtype).permute(2, 0, 3, 1, 4).unbind(0)
    weight, mask = torch.zeros(samples, heads, width, 2 * width, dtype=dtype), torch.ones(samples, tokens) > 0
    scores, energy, norms = kernels.forward(q, k, weight, mask)
    kernels.backward(scores, energy, q, k, weight, mask, scores, norms)


def pursuit(size: Size, dtype: torch.dtype) -> None:
    from kattn_cli.kernels.pursuit import triton as kernels

    samples, tokens, heads, width = size
    k = torch.zeros(samples, heads, tokens, width, dtype=dtype)
    signs = k.to(torch.int8)
    for tau in (torch.zeros(samples, heads, 1, 1), torch.zeros(samples, heads, tokens, 1)):
        kernels.forward(k, None, None, tau, 1, True, True)
        kernels.forward(k, k, k, tau, -1, False, False)
        kernels.backward(k, k, signs, tau, 1, True)
        kernels.backward(k, None, signs, tau, -1, False)


def draw(size: Size, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    samples, tokens, heads, _ = size
    return torch.zeros(size, dtype=dtype), torch.ones(heads), torch.ones(samples, tokens, dtype=torch.bool)


@pytest.mark.parametrize(("operator", "kernels"), [(tssa, 6), (causal_tssa, 8), (primal, 2), (pursuit, 2)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("size", [(1, 200, 8, 48), (1, 1, 1, 1)], ids=str)
def test_compiles_and_fits(
    launches: list[Launch], operator: Callable[..., None], kernels: int, dtype: torch.dtype, size: Size
) -> None:
    operator(size, dtype)
    assert len({launch[0] for launch in launches}) == kernels
    for launch in launches:
        compiled = compile_launch(*launch)
        assert compiled.asm["cubin"]
        assert compiled.metadata.shared <= SHARED


@pytest.mark.parametrize("half", [True, False])
def test_the_widest_primal_heads_fit(launches: list[Launch], half: bool) -> None:
    """Of those that :func:`kattn_cli.kernels.primal.operator.pays` lets through."""
    dtype = torch.bfloat16 if half else torch.float32
    primal((1, 200, 2, 256 // dtype.itemsize), dtype)
    for function, arguments, options in launches:
        arguments["HALF"] = half  # which a CPU's tensors leave out
        assert compile_launch(function, arguments, options).metadata.shared <= SHARED


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_differences_of_causal_sums_are_not_fused(launches: list[Launch], dtype: torch.dtype) -> None:
    """``(Σ w²) − w·w`` must be 0 at the first token, which it is not where w·w is not rounded before."""
    causal_tssa((1, 200, 8, 48), dtype)
    fused = {f.__name__: bool(re.search(r"\bfma\.", compile_launch(f, *given).asm["ptx"])) for f, *given in launches}
    assert not fused["input_pass"]
    assert fused["membership_pass"]
