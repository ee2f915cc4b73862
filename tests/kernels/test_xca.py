"""XCA with the norms divided out of the d × d product equals its equation."""

from __future__ import annotations

import pytest
import torch
from against_naive import SIZES, compare, draw, padding

from kattn_cli.kernels import xca as module
from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.xca import xca, xca_naive


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], masked: bool) -> None:
    inputs = [draw(*size), draw(*size), draw(*size), draw(size[1])]
    compare(xca, xca_naive, *inputs, mask=padding(size[2]) if masked else None)


def test_slow_is_the_equation(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = (draw(2, 3, 7, 5), draw(2, 3, 7, 5), draw(2, 3, 7, 5), draw(3), padding(7))
    monkeypatch.setattr(module, "cross_covariance", None)
    with operators("slow"):
        assert xca(*inputs).equal(xca_naive(*inputs))


@pytest.mark.parametrize("tokens", [197, 1025])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("version", ["slow", "plain"])
def test_sums_of_half_precision_are_exact(tokens: int, dtype: torch.dtype, version: str) -> None:
    """Of a feature of 20, as trained networks have them, qᵀk is beyond float16, and so are the sums of squares."""
    q, k, v = (torch.randn(1, 2, tokens, 16) for _ in range(3))
    q[..., 0], k[..., 0] = 20, 20
    leaves = [z.to(dtype).requires_grad_() for z in (q, k, v, torch.ones(2))]
    exact = [z.detach().double().requires_grad_() for z in leaves]
    with operators(version):
        out = xca(*leaves)
    expected = xca_naive(*exact)
    cotangent = torch.randn(out.shape).to(dtype)
    found = (out, *torch.autograd.grad(out, leaves, cotangent))
    for one, other in zip(found, (expected, *torch.autograd.grad(expected, exact, cotangent.double())), strict=True):
        assert one.dtype == dtype
        assert (one.double() - other).norm() < 2 * torch.finfo(dtype).eps * other.norm()
