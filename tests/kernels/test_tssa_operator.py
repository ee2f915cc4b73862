"""The operators of TSSA as torch sees them: types, tracing, autocast, shapes without numbers, threads."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.kernels import choice
from kattn_cli.kernels import compile_c as build
from kattn_cli.kernels.causal_tssa.operator import causal_tssa, causal_tssa_operator
from kattn_cli.kernels.tssa.operator import tssa, tssa_operator

pytestmark = pytest.mark.skipif(not build.available(), reason="no C compiler here")
HEADS, TOKENS, WIDTH = 3, 133, 5
MASK = torch.arange(TOKENS).expand(2, -1) % 7 != 1

Operator = Callable[[Tensor], Tensor]


def both() -> list[Operator]:
    """TSSA and its causal form as functions of ``w`` alone."""
    eta = torch.linspace(0.5, 2, HEADS)
    bias = torch.linspace(-1, 1, HEADS * TOKENS).reshape(1, HEADS, TOKENS, 1)
    return [lambda w: tssa(w, eta.to(w.device)), lambda w: causal_tssa(w, eta.to(w.device), bias.to(w.device))]


def gradient(operator: Operator, w: Tensor) -> tuple[Tensor, Tensor]:
    w = w.detach().requires_grad_()
    out = operator(w)
    cotangent = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(out)
    return out, torch.autograd.grad(out, w, cotangent)[0]


@pytest.fixture(autouse=True)
def _whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SMALL", 0)


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("normalize", [True, False])
def test_torch_accepts_the_operators(mask: Tensor | None, normalize: bool) -> None:
    w = torch.randn(2, TOKENS, HEADS, WIDTH, requires_grad=True)
    eta, bias = torch.ones(HEADS, requires_grad=True), torch.zeros(1, HEADS, TOKENS, requires_grad=True)
    torch.library.opcheck(tssa_operator, (w, eta, mask, normalize))
    torch.library.opcheck(causal_tssa_operator, (w, eta, bias, mask, normalize, 2))


@pytest.mark.parametrize("operator", both())
def test_float32_is_as_near_to_float64_as_torch_operations_are(operator: Operator) -> None:
    w = torch.randn(2, HEADS, TOKENS, WIDTH)
    exact = gradient(operator, w.double())
    fast = gradient(operator, w)
    with choice.operators("plain"):
        plain = gradient(operator, w)
    for ours, theirs, truth in zip(fast, plain, exact, strict=True):
        assert (ours - truth).abs().max() <= 2 * (theirs - truth).abs().max() + 1e-6 * truth.abs().max()


@pytest.mark.parametrize("operator", both())
def test_bfloat16_rounds_the_input_and_the_output_and_nothing_else(operator: Operator) -> None:
    w = torch.randn(2, HEADS, TOKENS, WIDTH).bfloat16()
    half, full = gradient(operator, w), gradient(operator, w.float())
    for rounded, exact in zip(half, full, strict=True):
        assert rounded.dtype == torch.bfloat16
        torch.testing.assert_close(rounded.float(), exact, rtol=2**-7, atol=2**-7 * exact.abs().max().item())
    assert torch.equal(half[0], full[0].bfloat16())


@pytest.mark.parametrize("operator", both())
def test_the_same_in_a_compiled_graph_and_under_autocast(operator: Operator) -> None:
    w = torch.randn(2, HEADS, TOKENS, WIDTH)
    eager = gradient(operator, w)
    compiled = torch.compile(operator, fullgraph=True, backend="aot_eager")
    with torch.autocast("cpu", torch.bfloat16):
        mixed = gradient(operator, w)
    for found in (gradient(compiled, w), mixed):
        assert torch.equal(found[0], eager[0])
        assert torch.equal(found[1], eager[1])


@pytest.mark.parametrize("operator", both())
def test_shapes_without_numbers(operator: Operator) -> None:
    w = torch.randn(2, HEADS, TOKENS, WIDTH, device="meta")
    out, grad = gradient(operator, w)
    assert out.shape == grad.shape == w.shape


@pytest.mark.parametrize("samples", [1, 2, 5])
@pytest.mark.parametrize("operator", both())
def test_threads_change_nothing_but_rounding(samples: int, operator: Operator) -> None:
    w = torch.randn(samples, HEADS, 700, WIDTH, dtype=torch.float64)[:, :, :TOKENS]
    one = gradient(operator, w)
    torch.set_num_threads(3)
    try:
        three, again = gradient(operator, w), gradient(operator, w)
    finally:
        torch.set_num_threads(1)
    for alone, together, repeated in zip(one, three, again, strict=True):
        torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-12)
        assert torch.equal(together, repeated)


def test_what_the_forward_pass_keeps() -> None:
    """Linear in N, and for the causal form two states a chunk: no further tensor of the size of ``w``."""
    w = torch.randn(1, 4096, 4, 32)
    kept = tssa_operator(w, torch.ones(4), None, True)[1:]
    causal = causal_tssa_operator(w, torch.ones(4), torch.zeros(1, 4, 4096), None, True, 1)[1:]
    assert sum(tensor.numel() for tensor in kept) == 2 * 4096 * 4 + 2 * 4 * 32 + 4
    assert sum(tensor.numel() for tensor in causal) == 3 * 4096 * 4 + 2 * 64 * 4 * 32


def test_torch_counts_their_operations() -> None:
    """Forward of one layer by its formula: 12 operations an entry (causal 14), 5 for each of a token's heads."""
    w = torch.randn(2, HEADS, TOKENS, WIDTH)
    for operator, each in zip(both(), (12, 14), strict=True):
        with FlopCounterMode(display=False) as counter:
            operator(w)
        assert counter.get_total_flops() == each * w.numel() + 5 * w[..., 0].numel()
