"""Primal scores in Triton equal the same operator in torch's operations, and so do their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.kernels.primal.operator import primal_operator, primal_operator_backward

SIZES = [(1, 1, 1, 1, 1), (2, 3, 63, 5, 3), (2, 2, 70, 48, 32), (1, 2, 129, 33, 20)]
"""``(B, H, N, d, s)``: the smallest, odd ones, more tokens than a program holds, just over a power of two."""
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 2**-6}
"""Relative in norm. bfloat16: factors and results rounded once, to nearest or, in Triton's interpreter, down."""


@pytest.fixture
def kernels(kernels_of: Callable[[str], Any]) -> Any:
    return kernels_of("kattn_cli.kernels.primal.triton")


def check(kernels: Any, device: str, given: tuple[Tensor, Tensor, Tensor], mask: Tensor | None, energy: bool) -> None:
    """Forward and backward, against float64."""
    dtype, exact = given[0].dtype, [z.double() for z in given]
    there = None if mask is None else mask.to(device)
    on_device = [z.to(device) for z in given]
    scores, energies, norms = kernels.forward(*on_device, there)
    expected = primal_operator(*exact, mask)
    grad = torch.randn(scores.transpose(1, 2).shape).to(dtype).transpose(1, 2)
    grad_energy = torch.randn(energies.shape) if energy else None
    found_by = kernels.backward(
        grad.to(device), None if grad_energy is None else grad_energy.to(device), *on_device, there, scores, norms
    )
    by = primal_operator_backward(
        grad.double(), None if grad_energy is None else grad_energy.double(), *exact, mask, expected[0], expected[2]
    )
    for ours, theirs in zip((scores, energies, norms, *found_by), (*expected, *by), strict=True):
        assert ours.shape == theirs.shape
        assert (ours.cpu().double() - theirs).norm() <= TOLERANCES[dtype] * (1 + theirs.norm())
    assert [z.dtype for z in (scores, energies, norms, *found_by)] == [
        dtype,
        torch.float32,
        torch.float32,
        *3 * [dtype],
    ]


def draw(size: tuple[int, ...], dtype: torch.dtype, shared: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    b, h, n, d, s = size
    q, k = torch.randn(b, n, 2, h, d).to(dtype).permute(2, 0, 3, 1, 4).unbind(0)
    return q, k, torch.randn(1 if shared else b, h, d, 2 * s).to(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("energy", [False, True])
def test_equals_torch_operations(
    kernels: Any, device: str, size: tuple[int, ...], dtype: torch.dtype, energy: bool
) -> None:
    check(kernels, device, draw(size, dtype), None, energy)


def test_thousands_of_tokens(kernels: Any, device: str) -> None:
    check(kernels, device, draw((1, 1, 4097, 3, 2), torch.float32), None, True)


@pytest.mark.parametrize("shared", [False, True])
def test_padding_has_no_energy(kernels: Any, device: str, shared: bool) -> None:
    mask = torch.ones(2, 133, dtype=torch.bool)
    mask[1, :40] = mask[1, 70:90] = mask[1, 120:] = False
    check(kernels, device, draw((2, 3, 133, 5, 3), torch.float32, shared), mask, True)


def test_one_program_takes_several_blocks_of_tokens(kernels: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "PROGRAMS", 1)
    check(kernels, device, draw((2, 3, 300, 5, 3), torch.float32), None, True)


def test_norms_are_clamped(kernels: Any, device: str) -> None:
    q, k, weight = draw((1, 2, 5, 4, 3), torch.float32)
    q[0, 0, 1], k[0, 1, 2] = 0, 1e-14
    check(kernels, device, (q, k, weight), None, True)


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_same_input_gives_the_same_bits(kernels: Any, device: str) -> None:
    given = [z.to(device) for z in draw((2, 8, 20_000, 48, 32), torch.bfloat16)]
    scores, energy, norms = kernels.forward(*given, None)
    results = [kernels.backward(scores, energy, *given, None, scores, norms) for _ in range(2)]
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    assert torch.equal(kernels.forward(*given, None)[1], energy)
