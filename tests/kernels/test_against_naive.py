"""Every fast operator equals its slow version, outputs and gradients, at odd sizes and several heads."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kattn_cli.kernels.pap import pap, pap_naive
from kattn_cli.kernels.primal import cosine_features, primal_scores, primal_scores_naive
from kattn_cli.kernels.softmax import softmax_attention, softmax_attention_naive
from kattn_cli.kernels.tssa import tssa, tssa_naive

SIZES = [(1, 2, 1, 4), (2, 3, 2, 8), (2, 3, 63, 5)]
TOLERANCE = 1e-9


def compare(fast: Callable[..., Tensor], slow: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Outputs and the gradients of all inputs, in float64."""
    results = []
    for function in (fast, slow):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        out = function(*leaves)
        cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
        results.append((out, *torch.autograd.grad(out, leaves, cotangent)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("causal", [False, True])
def test_softmax(size: tuple[int, ...], causal: bool) -> None:
    compare(
        lambda q, k, v: softmax_attention(q, k, v, causal=causal),
        lambda q, k, v: softmax_attention_naive(q, k, v, causal),
        draw(*size),
        draw(*size),
        draw(*size),
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("convention", ["paper", "reference", "textbook"])
@pytest.mark.parametrize(("iterations", "lambda_"), [(1, 4.0), (2, 3.0), (4, 0.05)])
def test_pap(size: tuple[int, ...], convention: str, iterations: int, lambda_: float) -> None:
    options = {"iterations": iterations, "lambda_": lambda_, "convention": convention}
    compare(
        lambda k, v: pap(k, v, **options),  # type: ignore[arg-type]
        lambda k, v: pap_naive(k, v, **options),  # type: ignore[arg-type]
        draw(*size),
        draw(*size),
    )


@pytest.mark.parametrize("convention", ["paper", "reference", "textbook"])
def test_pap_from_queries(convention: str) -> None:
    options = {"iterations": 3, "lambda_": 0.1, "convention": convention}
    compare(
        lambda q, k, v: pap(k, v, q=q, **options),  # type: ignore[arg-type]
        lambda q, k, v: pap_naive(k, v, q=q, **options),  # type: ignore[arg-type]
        *(draw(2, 3, 17, 5) for _ in range(3)),
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("normalize", [True, False])
def test_tssa(size: tuple[int, ...], normalize: bool) -> None:
    eta = draw(size[1])
    compare(lambda w, e: tssa(w, e, normalize), lambda w, e: tssa_naive(w, e, normalize), draw(*size), eta)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dependent", [True, False])
def test_primal(size: tuple[int, ...], dependent: bool) -> None:
    b, h, _, d = size
    if dependent:
        rows, weight = draw(b, h, 7, d), draw(h, 7, 3)
        compare(
            lambda z, x, w: primal_scores(cosine_features(z), x, w),
            lambda z, x, w: primal_scores_naive(z / z.norm(dim=-1, keepdim=True), x, w),
            draw(*size),
            rows,
            weight,
        )
    else:
        compare(
            lambda z, w: primal_scores(cosine_features(z), None, w),
            lambda z, w: primal_scores_naive(z / z.norm(dim=-1, keepdim=True), None, w),
            draw(*size),
            draw(h, d, 3),
        )


def test_tssa_survives_a_silent_feature() -> None:
    w = draw(1, 2, 5, 3)
    w[..., 0] = 0
    w.requires_grad_()
    out = tssa(w, torch.ones(2, dtype=torch.float64))
    out.sum().backward()
    assert out.isfinite().all()
    assert w.grad is not None
    assert w.grad.isfinite().all()
