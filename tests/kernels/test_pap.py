"""The pursuit in U = Y/μ with fused attention equals Algorithm 1 line by line."""

from __future__ import annotations

from typing import get_args

import pytest
from against_naive import SIZES, compare, draw, padding

from kattn_cli.kernels.pap import Convention, Pursuit, pap, pap_naive


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
