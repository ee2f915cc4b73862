"""The pursuit in U = Y/μ with fused attention equals Algorithm 1 line by line."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from against_naive import SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.pursuit import equations as module
from kattn_cli.kernels.pursuit.equations import Convention, Pursuit, pap, pap_naive


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
