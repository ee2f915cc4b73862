"""TSSA in Triton equals its equations, and their gradients by autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.kernels.tssa.equations import tssa_naive, tssa_plain

SIZES = [(2, 1, 1, 1), (2, 3, 63, 5), (1, 8, 70, 48), (1, 2, 4097, 3)]
"""``(B, H, N, d)``: the smallest, odd ones, more tokens than a program holds, many spans of them."""
N = 63
PADDINGS = {
    "middle": torch.arange(N) // 20 != 1,
    "end": torch.arange(N) < 50,
    "front": torch.arange(N) > 40,
    "everywhere": torch.zeros(N, dtype=torch.bool),
}
Tensors = tuple[Tensor, ...]


@pytest.fixture
def kernels(kernels_of: Callable[[str], Any]) -> Any:
    return kernels_of("kattn_cli.kernels.tssa.triton")


def draw(size: tuple[int, ...], device: str, dtype: torch.dtype = torch.float64) -> Tensors:
    """w, with a silent feature where it has more than one, η, and the gradient of the output."""
    samples, heads, tokens, width = size
    w = torch.randn(samples, tokens, heads, width)
    w[..., 1:2] = 0
    eta, grad = torch.rand(heads) + 0.5, torch.randn_like(w)
    return w.to(device, dtype), eta.to(device, torch.promote_types(dtype, torch.float32)), grad.to(device, dtype)


def by_kernels(kernels: Any, given: Tensors, normalize: bool = True, mask: Tensor | None = None) -> Tensors:
    w, eta, grad = given
    out, *saved = kernels.forward(w, eta, mask, normalize)
    return out, *kernels.backward(grad, w, eta, mask, *saved, normalize)


def by_autograd(
    operator: Callable[..., Tensor], given: Tensors, normalize: bool = True, mask: Tensor | None = None
) -> Tensors:
    w, eta = (z.detach().requires_grad_() for z in given[:2])
    out = operator(w.transpose(1, 2), eta, normalize, mask).transpose(1, 2)
    return out, *torch.autograd.grad(out, (w, eta), given[2])


def in_float64(given: Tensors) -> Tensors:
    return tuple(z.double() for z in given)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("normalize", [True, False])
def test_equals_the_equations(kernels: Any, device: str, size: tuple[int, ...], normalize: bool) -> None:
    given = draw(size, device)
    found, expected = by_kernels(kernels, given, normalize), by_autograd(tssa_naive, given, normalize)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("where", PADDINGS)
def test_padding_has_no_mass(kernels: Any, device: str, where: str) -> None:
    w, eta, grad = draw((2, 3, N, 5), device)
    mask = torch.stack([torch.ones(N, dtype=torch.bool), PADDINGS[where]]).to(device)
    there = mask[..., None, None]
    found = by_kernels(kernels, (w * there, eta, grad), mask=mask)
    expected = by_autograd(tssa_naive, (w, eta, grad), mask=mask)
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(ours * there, theirs * there, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found[2], expected[2], rtol=1e-9, atol=1e-9)
    assert found[1].isfinite().all()


def test_many_parts_are_added_up_before(kernels: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = draw((1, 3, 300, 5), device)
    expected = by_autograd(tssa_naive, given)
    monkeypatch.setattr(kernels, "FEW_PARTS", 1)
    torch.testing.assert_close(by_kernels(kernels, given), expected, rtol=1e-9, atol=1e-9)


def test_statistics_are_what_they_are_called(kernels: Any, device: str) -> None:
    w, eta, _ = draw((2, 3, N, 5), device)
    _, energy, membership, inverse_norms, shrinkage, mass = kernels.forward(w, eta, None, True)
    norms = w.square().sum(1).clamp(min=1e-24)
    torch.testing.assert_close(inverse_norms, 1 / norms)
    torch.testing.assert_close(energy, (w.square() / norms[:, None]).sum(-1))
    torch.testing.assert_close(membership, (eta * energy).softmax(-1))
    torch.testing.assert_close(mass, membership.sum(1) + 1e-8)
    moments = (membership[..., None] * w.square()).sum(1) / mass[..., None]
    torch.testing.assert_close(shrinkage, 1 / (1 + moments))


@pytest.mark.parametrize("normalize", [True, False])
def test_float32_is_as_near_to_float64_as_torch_operations_are(kernels: Any, device: str, normalize: bool) -> None:
    given = draw((2, 3, 133, 5), device, torch.float32)
    truth = by_autograd(tssa_naive, in_float64(given), normalize)
    found, plain = by_kernels(kernels, given, normalize), by_autograd(tssa_plain, given, normalize)
    for ours, theirs, exact in zip(found, plain, truth, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - exact).abs().max() <= 2 * (theirs - exact).abs().max() + 1e-6 * exact.abs().max()


def test_bfloat16_is_rounded_once(kernels: Any, device: str) -> None:
    """At the end, to the nearest: by 2⁻⁸ of an entry at most; Triton's interpreter cuts off: by 2⁻⁷."""
    given = draw((2, 3, 133, 5), device, torch.bfloat16)
    found, truth = by_kernels(kernels, given), by_autograd(tssa_naive, in_float64(given))
    for ours, exact in zip(found[:2], truth[:2], strict=True):
        assert ours.dtype == torch.bfloat16
        torch.testing.assert_close(ours.double(), exact, rtol=2**-7 if device == "cpu" else 2**-8, atol=1e-5)
    torch.testing.assert_close(found[2].double(), truth[2], rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_same_input_gives_the_same_bits(kernels: Any, device: str) -> None:
    given = draw((2, 8, 20_000, 48), device, torch.bfloat16)
    for one, other in zip(by_kernels(kernels, given), by_kernels(kernels, given), strict=True):
        assert torch.equal(one, other)
