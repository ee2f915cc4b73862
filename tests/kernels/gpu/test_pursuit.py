"""The pursuit's step in Triton equals the same step in torch's operations, and so does its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kattn_cli.kernels.pursuit.equations import CONVENTIONS, Convention, Pursuit, threshold
from kattn_cli.kernels.pursuit.operator import pursuit_step, pursuit_step_backward

SIZES = [(1, 1, 1, 1), (2, 3, 63, 5), (2, 2, 70, 48)]
"""``(B, H, N, d)``: the smallest, odd ones, more tokens than a program holds."""
TOLERANCES = {torch.float64: 1e-9, torch.float32: 2e-5, torch.bfloat16: 2**-6}
"""bfloat16: each rounds once, to nearest or, in Triton's interpreter, down, numbers below 16: by 2⁻⁴ then."""
Arguments = tuple[Any, ...]


@pytest.fixture
def kernels(kernels_of: Callable[[str], Any]) -> Any:
    return kernels_of("kattn_cli.kernels.pursuit.triton")


def steps(
    size: tuple[int, ...], convention: Convention, causal: bool, dtype: torch.dtype
) -> list[tuple[Arguments, Arguments]]:
    """Arguments of both kernels: for the first step, one between and the last."""
    b, h, n, d = size
    low_rank, carried, grad_z, grad_following = torch.randn(4, b, n, h, d).to(dtype).transpose(2, 3).unbind(0)
    k = torch.randn(b, n, 2, h, d).to(dtype)[:, :, 0].transpose(1, 2)
    settings = Pursuit(2, 0.2, convention, causal)
    tau, sign = threshold(k, settings), settings.sign
    signs = torch.randint(-1, 2, (b, n, h, d), dtype=torch.int8).transpose(1, 2)
    return [
        ((k, None, None, tau, sign, True, True), (grad_z, grad_following, signs, tau, sign, True)),
        ((k, low_rank, carried, tau, sign, True, True), (grad_z, grad_following, signs, tau, sign, False)),
        ((k, low_rank, carried, tau, sign, False, False), (grad_z, None, signs, tau, sign, False)),
    ]


def check(one: Callable[..., Any], other: Callable[..., Any], given: Arguments, device: str) -> None:
    found = one(*(z.to(device) if isinstance(z, Tensor) else z for z in given))
    for ours, expected in zip(found, other(*given), strict=True):
        tolerance = TOLERANCES[given[0].dtype]
        assert ours.dtype == expected.dtype
        torch.testing.assert_close(ours.cpu(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_equals_torch_operations(
    kernels: Any, device: str, size: tuple[int, ...], convention: Convention, causal: bool, dtype: torch.dtype
) -> None:
    for forward, backward in steps(size, convention, causal, dtype):
        check(kernels.forward, pursuit_step, forward, device)
        check(kernels.backward, pursuit_step_backward, backward, device)


@pytest.mark.parametrize("causal", [False, True])
def test_thousands_of_tokens(kernels: Any, device: str, causal: bool) -> None:
    _, (forward, backward), _ = steps((1, 2, 4097, 3), "paper", causal, torch.float64)
    check(kernels.forward, pursuit_step, forward, device)
    check(kernels.backward, pursuit_step_backward, backward, device)


def test_any_layout_will_do(kernels: Any, device: str) -> None:
    """Heads first, as torch's own attention gives them, and a gradient that is one number everywhere."""
    forward, backward = steps((2, 3, 7, 5), "paper", False, torch.float64)[1]
    check(kernels.forward, pursuit_step, (*(z.contiguous() for z in forward[:3]), *forward[3:]), device)
    same = torch.ones(1, dtype=torch.float64).expand(2, 3, 7, 5)
    check(kernels.backward, pursuit_step_backward, (same, *backward[1:]), device)


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_same_input_gives_the_same_bits(kernels: Any, device: str) -> None:
    _, (_, backward), _ = steps((2, 8, 20_000, 48), "paper", False, torch.bfloat16)
    given = [z.to(device) if isinstance(z, Tensor) else z for z in backward]
    for one, other in zip(kernels.backward(*given), kernels.backward(*given), strict=True):
        assert torch.equal(one, other)
