"""Where a norm is next to nothing, or nothing, outputs and gradients in float32 are those of the equations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kattn_cli.kernels import choice
from kattn_cli.kernels.causal_tssa.equations import causal_tssa_naive
from kattn_cli.kernels.causal_tssa.operator import causal_tssa
from kattn_cli.kernels.choice import VERSIONS, operators
from kattn_cli.kernels.primal.equations import cosine_scores, primal_scores_naive
from kattn_cli.kernels.tssa.equations import NORM_EPSILON, tssa_naive
from kattn_cli.kernels.tssa.operator import tssa
from kattn_cli.kernels.xca import xca, xca_naive
from kattn_cli.kernels.yoso_e import yoso

pytestmark = [
    pytest.mark.parametrize("version", VERSIONS),
    pytest.mark.parametrize("norm", [1e-5, 1e-10, 1e-11, 1e-20, 0.0]),
]


@pytest.fixture(autouse=True)
def _whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SMALL", 0)


def of_norm(norm: float, *shape: int, dim: int) -> Tensor:
    """Vectors along ``dim``, of which the second has this norm."""
    z = torch.randn(shape)
    z.select(3 if dim == 2 else 2, 1).mul_(norm / z.select(3 if dim == 2 else 2, 1).norm(dim=-1, keepdim=True))
    return z


def check(
    version: str, fast: Callable[..., Tensor], slow: Callable[..., Tensor], *inputs: Tensor, dim: int = 2
) -> None:
    """Equal outputs and gradients, each vector along ``dim`` in its own norm: one is 1e10 times another."""
    exact = [z.double().requires_grad_() for z in inputs]
    leaves = [z.requires_grad_() for z in inputs]
    expected = slow(*exact)
    with operators(version):
        out = fast(*leaves)
    cotangent = torch.randn(out.shape)
    expected_grads = torch.autograd.grad(expected, exact, cotangent.double())
    for one, other in zip(
        (out, *torch.autograd.grad(out, leaves, cotangent)), (expected, *expected_grads), strict=True
    ):
        along = dim if other.ndim == 4 else None
        errors = torch.linalg.vector_norm(one - other, dim=along)
        assert (errors <= 1e-4 * torch.linalg.vector_norm(other, dim=along)).all()


def test_tssa(version: str, norm: float) -> None:
    check(version, tssa, tssa_naive, of_norm(norm, 2, 3, 17, 4, dim=2), torch.rand(3))


def test_causal_tssa(version: str, norm: float) -> None:
    inputs = (of_norm(norm, 2, 3, 17, 4, dim=2), torch.rand(3), torch.randn(1, 3, 17, 1))
    check(version, causal_tssa, causal_tssa_naive, *inputs)


def test_xca(version: str, norm: float) -> None:
    q, k = of_norm(norm, 2, 3, 17, 4, dim=2), of_norm(norm, 2, 3, 17, 4, dim=2).flip(-1)
    check(version, xca, xca_naive, q, k, torch.randn(2, 3, 17, 4), torch.ones(3))


def test_primal_scores(version: str, norm: float) -> None:
    def naive(q: Tensor, k: Tensor, w_e: Tensor, w_r: Tensor) -> Tensor:
        phi_q, phi_k = (z / z.norm(dim=-1, keepdim=True).clamp(min=NORM_EPSILON) for z in (q, k))
        return torch.cat((primal_scores_naive(phi_q, None, w_e), primal_scores_naive(phi_k, None, w_r)), -1)

    q, k = of_norm(norm, 2, 3, 7, 4, dim=3), of_norm(norm, 2, 3, 7, 4, dim=3).flip(-2)
    weights = torch.randn(2, 3, 4, 5).unbind(0)
    check(version, lambda q, k, *w: cosine_scores(q, k, None, *w)[0], naive, q, k, *weights, dim=3)


def test_yoso(version: str, norm: float) -> None:
    """Against itself in float64: token by token it has no least norm."""

    def of_nine_bits(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return yoso(q, k, v, 9)

    inputs = (of_norm(norm, 2, 3, 17, 4, dim=3), *torch.randn(2, 2, 3, 17, 4))
    check(version, of_nine_bits, of_nine_bits, *inputs, dim=3)
