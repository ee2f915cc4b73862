"""The pursuit in U = Y/μ with fused attention equals Algorithm 1 line by line."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from against_naive import SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.pursuit import equations as module
from kattn_cli.kernels.pursuit.equations import Convention, Pursuit, pap, pap_fused, pap_naive, threshold


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("convention", get_args(Convention))
@pytest.mark.parametrize(("iterations", "lambda_"), [(1, 4.0), (2, 3.0), (4, 0.05)])
@pytest.mark.parametrize(("causal", "masked"), [(False, False), (False, True), (True, False), (True, True)])
def test_equals_naive(
    size: tuple[int, ...], convention: Convention, iterations: int, lambda_: float, causal: bool, masked: bool
) -> None:
    pursuit = Pursuit(iterations, lambda_, convention, causal)
    compare(
        lambda k, v, mask: pap(k, v, pursuit, mask=mask),
        lambda k, v, mask: pap_naive(k, v, pursuit, mask=mask),
        draw(*size),
        draw(*size),
        mask=padding(size[2]) if masked else None,
    )


@pytest.mark.usefixtures("each_version")
@pytest.mark.parametrize("convention", get_args(Convention))
def test_from_queries_equals_naive(convention: Convention) -> None:
    pursuit = Pursuit(3, 0.1, convention)
    compare(
        lambda q, k, v, mask: pap(k, v, pursuit, q=q, mask=mask),
        lambda q, k, v, mask: pap_naive(k, v, pursuit, q=q, mask=mask),
        *(draw(2, 3, 17, 5) for _ in range(3)),
        mask=padding(17),
    )


def test_slow_is_algorithm_1(monkeypatch: pytest.MonkeyPatch) -> None:
    k, v, q, mask = draw(2, 3, 7, 5), draw(2, 3, 7, 5), draw(2, 3, 7, 5), padding(7)
    pursuit = Pursuit(3, 0.1, causal=True)
    monkeypatch.setattr(module, "softmax_attention", None)
    with operators("slow"):
        assert pap(k, v, pursuit, q=q, mask=mask).equal(pap_naive(k, v, pursuit, q=q, mask=mask))


def test_operators_take_over_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 2¹⁸ entries on, unless others are asked for."""
    taken = []

    def step(k: Tensor, *_: object) -> tuple[Tensor, Tensor, Tensor]:
        taken.append(k.numel())
        return k, k, k

    monkeypatch.setattr(module, "pursuit_step", step)
    for tokens, version in [(2**15 - 1, "fast"), (2**15, "fast"), (2**15, "plain")]:
        k = torch.zeros(1, 1, tokens, 8, device="cpu")
        monkeypatch.setattr(module, "softmax_attention", lambda q, k, v, **_: v)
        with operators(version):
            pap(k, k, Pursuit(2, 4.0))
    assert taken == [2**18, 2**18]


@pytest.mark.parametrize("convention", get_args(Convention))
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tokens", [197, 1025])
def test_thresholds_of_half_precision_are_exact(
    convention: Convention, causal: bool, masked: bool, dtype: torch.dtype, tokens: int
) -> None:
    """τ of keys whose ‖k‖₁ float16 does not reach and bfloat16 stops adding to; its gradient has the keys' type."""
    pursuit, mask = Pursuit(4, 4.0, convention, causal), padding(tokens)[1:] if masked else None
    k = (2 * torch.randn(1, 3, tokens, 64)).to(dtype)
    results = []
    for keys in (k.requires_grad_(), k.detach().double().requires_grad_()):
        tau = threshold(keys, pursuit, mask)
        results.append((tau, torch.autograd.grad(tau.sum() * 1e3, keys)[0]))
    (tau, grad), (exact_tau, exact_grad) = results
    assert tau.dtype == torch.float32
    assert grad.dtype == dtype
    torch.testing.assert_close(tau.double(), exact_tau, rtol=1e-5, atol=0)
    torch.testing.assert_close(grad.double(), exact_grad, rtol=torch.finfo(dtype).eps, atol=1e-6)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_versions_agree_in_half_precision(causal: bool, dtype: torch.dtype, autocast: bool) -> None:
    """In norm; keys about an offset, so that attention mixes them, and beyond τ. Causal pursuits amplify rounding."""
    k = (3 * torch.randn(1, 2, 1, 64).sign() + torch.randn(1, 2, 197, 64) / 4).to(dtype)
    v, pursuit = torch.randn_like(k), Pursuit(2, 0.05, causal=True) if causal else Pursuit(4, 0.1)
    expected = pap_naive(k.double(), v.double(), pursuit)
    for function in (pap_naive, pap_fused, pap):
        with torch.autocast("cpu", dtype, enabled=autocast):
            out = function(k, v, pursuit)
        assert out.dtype == dtype
        assert (out.double() - expected).norm() < (8 if causal else 3) * torch.finfo(dtype).eps * expected.norm()
