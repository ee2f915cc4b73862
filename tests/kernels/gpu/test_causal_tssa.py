"""Causal TSSA in Triton equals its form in cumulative sums, and their gradients by autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.kernels.causal_tssa.equations import CHUNK, causal_tssa_plain

pytestmark = pytest.mark.filterwarnings("ignore:divide by zero")  # the interpreter's, in what tl.where leaves out
SIZES = [(2, 1, 1, 1), (2, 3, 63, 5), (2, 3, 133, 5), (1, 8, 65, 48)]
"""``(B, H, N, d)``: the smallest, odd ones, less than a chunk and more."""
N = 133
PADDINGS = {
    "middle": torch.arange(N) // 40 != 1,
    "end": torch.arange(N) < 70,
    "front": torch.arange(N) > 80,
    "everywhere": torch.zeros(N, dtype=torch.bool),
}
Tensors = tuple[Tensor, ...]


@pytest.fixture
def kernels(kernels_of: Callable[[str], Any]) -> Any:
    return kernels_of("kattn_cli.kernels.causal_tssa.triton")


def draw(size: tuple[int, ...], device: str, dtype: torch.dtype = torch.float64, biases: int = 1) -> Tensors:
    """w, with a silent feature and one that begins late where it has them; η; the biases; the output's gradient."""
    samples, heads, tokens, width = size
    w = torch.randn(samples, tokens, heads, width)
    w[..., 1:2] = 0
    w[:, : tokens // 2, :, 2:3] = 0
    eta, bias, grad = torch.rand(heads) + 0.5, torch.randn(biases, heads, tokens) / 4, torch.randn_like(w)
    exact = torch.promote_types(dtype, torch.float32)
    return w.to(device, dtype), eta.to(device, exact), bias.to(device, exact), grad.to(device, dtype)


def by_kernels(
    kernels: Any, given: Tensors, normalize: bool = True, repeats: int = 1, mask: Tensor | None = None
) -> Tensors:
    *inputs, grad = *given[:3], mask, normalize, repeats, given[3]
    out, *saved = kernels.forward(*inputs)
    return out, *kernels.backward(grad, *inputs, *saved)


def by_autograd(given: Tensors, normalize: bool = True, repeats: int = 1, mask: Tensor | None = None) -> Tensors:
    w, eta, bias = (z.detach().requires_grad_() for z in given[:3])
    out, _ = causal_tssa_plain(w.transpose(1, 2), eta, repeats * bias[..., None], normalize, mask=mask)
    out = out.transpose(1, 2)
    return out, *torch.autograd.grad(out, (w, eta, bias), given[3])


def in_float64(given: Tensors) -> Tensors:
    return tuple(z.double() for z in given)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("normalize", [True, False])
def test_equals_cumulative_sums(kernels: Any, device: str, size: tuple[int, ...], normalize: bool) -> None:
    given = draw(size, device)
    found, expected = by_kernels(kernels, given, normalize), by_autograd(given, normalize)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_equals_cumulative_sums_over_many_chunks(kernels: Any, device: str) -> None:
    given = draw((1, 2, 4097, 3), device)
    torch.testing.assert_close(by_kernels(kernels, given), by_autograd(given), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("where", PADDINGS)
def test_padding_has_no_mass(kernels: Any, device: str, where: str) -> None:
    w, eta, bias, grad = draw((2, 3, N, 5), device, biases=2)
    mask = torch.stack([torch.ones(N, dtype=torch.bool), PADDINGS[where]]).to(device)
    there = mask[..., None, None]
    found = by_kernels(kernels, (w * there, eta, bias, grad * there), mask=mask)
    expected = by_autograd((w, eta, bias, grad * there), mask=mask)
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(ours * there, theirs * there, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found[2:], expected[2:], rtol=1e-9, atol=1e-9)
    assert found[1].isfinite().all()


@pytest.mark.parametrize("biases", [1, 2])
def test_bias_may_be_repeated_and_strided(kernels: Any, device: str, biases: int) -> None:
    w, eta, bias, grad = draw((2, 3, 70, 5), device, biases=biases)
    strided = bias.mT.contiguous().mT
    found = by_kernels(kernels, (w, eta, strided, grad), repeats=5)
    torch.testing.assert_close(found, by_autograd((w, eta, bias, grad), repeats=5), rtol=1e-9, atol=1e-9)


def test_states_are_the_sums_before_each_chunk(kernels: Any, device: str) -> None:
    w, eta, bias, _ = draw((2, 3, N, 5), device)
    _, energy, membership, mass, energy_states, moment_states = kernels.forward(w, eta, bias, None, True, 2)
    squared = w.square()
    shares = squared / squared.cumsum(1).clamp(min=1e-12)
    torch.testing.assert_close(energy, shares.sum(-1) + 2 * bias.mT)
    torch.testing.assert_close(membership, (eta * energy).softmax(-1))
    torch.testing.assert_close(mass, membership.cumsum(1) + 1e-8)
    for chunk in range(-(-N // CHUNK)):
        before = slice(chunk * CHUNK)
        torch.testing.assert_close(energy_states[:, chunk], squared[:, before].sum(1))
        weighted = membership[:, before, :, None] * squared[:, before]
        torch.testing.assert_close(moment_states[:, chunk], weighted.sum(1))


@pytest.mark.parametrize("normalize", [True, False])
def test_float32_is_as_near_to_float64_as_torch_operations_are(kernels: Any, device: str, normalize: bool) -> None:
    given = draw((2, 3, N, 5), device, torch.float32)
    truth = by_autograd(in_float64(given), normalize)
    found, plain = by_kernels(kernels, given, normalize), by_autograd(given, normalize)
    for ours, theirs, exact in zip(found, plain, truth, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - exact).abs().max() <= 2 * (theirs - exact).abs().max() + 1e-6 * exact.abs().max()


def test_small_first_tokens_keep_their_digits(kernels: Any, device: str) -> None:
    """There 1 / Σ w² is large, and what later tokens' shares take from it must not be lost beside it."""
    w, eta, bias, grad = draw((1, 3, N, 5), device, torch.float32)
    w[:, :1] *= 1e-4
    exact = by_autograd(in_float64((w, eta, bias, grad)))[1]
    found = by_kernels(kernels, (w, eta, bias, grad))[1]
    torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=2e-5)


def test_bfloat16_is_rounded_once(kernels: Any, device: str) -> None:
    """At the end, to the nearest: by 2⁻⁸ of an entry at most; Triton's interpreter cuts off: by 2⁻⁷."""
    given = draw((2, 3, N, 5), device, torch.bfloat16)
    found, truth = by_kernels(kernels, given), by_autograd(in_float64(given))
    for ours, exact in zip(found[:2], truth[:2], strict=True):
        assert ours.dtype == torch.bfloat16
        torch.testing.assert_close(ours.double(), exact, rtol=2**-7 if device == "cpu" else 2**-8, atol=1e-4)
    torch.testing.assert_close([z.double() for z in found[2:]], list(truth[2:]), rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_same_input_gives_the_same_bits(kernels: Any, device: str) -> None:
    given = draw((2, 8, 20_000, 48), device, torch.bfloat16)
    for one, other in zip(by_kernels(kernels, given), by_kernels(kernels, given), strict=True):
        assert torch.equal(one, other)
