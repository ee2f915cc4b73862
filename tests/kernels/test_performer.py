"""Performer's random features: what they estimate, and that their stabilisers cancel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from against_naive import PADDINGS, SIZES, compare, draw
from torch import Tensor

from kattn_cli.kernels.linear import linear_attention
from kattn_cli.kernels.performer import log_features, orthogonal_gaussian, performer_naive, softmax_features
from kattn_cli.kernels.softmax import softmax_attention


def fast(q: Tensor, k: Tensor, v: Tensor, projection: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    phi_q, phi_k, log_weight = softmax_features(q, k, projection)
    return linear_attention(phi_q, phi_k, v, mask=mask, causal=causal, log_weight=log_weight)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask_of", PADDINGS)
def test_equals_the_equation(size: tuple[int, ...], causal: bool, mask_of: Callable[[int], Tensor | None]) -> None:
    projection = orthogonal_gaussian(13, size[-1]).double()
    compare(
        partial(fast, projection=projection, causal=causal),
        partial(performer_naive, projection=projection, causal=causal),
        *(draw(*size) for _ in range(3)),
        mask=mask_of(size[2]),
    )


def test_rows_are_orthogonal_in_blocks_and_as_long_as_gaussian_ones() -> None:
    projection = orthogonal_gaussian(20, 8).double()
    for block in projection.split(8):
        gram = block @ block.mT
        torch.testing.assert_close(gram, gram.diagonal().diag(), rtol=0, atol=1e-5)
    squares = orthogonal_gaussian(40_000, 8).square().sum(-1)  # χ² with 8 degrees of freedom
    assert abs(squares.mean() - 8) < 0.1
    assert abs(squares.var() - 16) < 0.6


def kernel_estimates(draws: int, orthogonal: bool) -> tuple[Tensor, Tensor]:
    """``exp(xᵀ y / √d)`` for a pair, and its estimates from ``draws`` projections with m = d."""
    torch.manual_seed(0)
    x, y = 0.8 * draw(1, 4), 0.8 * draw(1, 4) + 0.5
    rows = orthogonal_gaussian(4 * draws, 4).double() if orthogonal else draw(4 * draws, 4)
    terms = log_features(x, rows).exp() * log_features(y, rows).exp()  # each over the number of all rows
    return (x @ y.mT / 2).exp()[0, 0], draws * terms.view(draws, 4).sum(-1)


def test_the_estimate_is_unbiased() -> None:
    """Lemma 1, within three standard errors of the mean."""
    exact, estimates = kernel_estimates(4000, orthogonal=True)
    error = estimates.std() / len(estimates) ** 0.5
    assert error < 0.03 * exact
    assert abs(estimates.mean() - exact) < 3 * error


def test_orthogonal_features_vary_less_than_independent_ones() -> None:
    """Theorem 2."""
    assert kernel_estimates(4000, orthogonal=True)[1].var() < 0.9 * kernel_estimates(4000, orthogonal=False)[1].var()


@pytest.mark.parametrize("causal", [False, True])
def test_many_features_give_softmax_attention(causal: bool) -> None:
    """The error falls as 1/√m: by 4 from m = 64 to 16 times as many."""
    q, k, v = 0.4 * draw(2, 2, 17, 8), 0.4 * draw(2, 2, 17, 8), draw(2, 2, 17, 8)
    exact = softmax_attention(q, k, v, causal=causal)
    rows = orthogonal_gaussian(8 * 1024, 8).double()

    def error(features: int) -> float:
        found = [fast(q, k, v, projection, None, causal) for projection in rows.split(features)]
        return float((torch.stack(found) - exact).square().mean().sqrt())

    few, many = error(64), error(1024)
    assert many < 0.02
    assert 3 < few / many < 5


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 30), (30, 1)])
def test_large_queries_and_keys_neither_overflow_nor_vanish(causal: bool, queries: int, keys: int) -> None:
    """Features down to e⁻³⁶⁰⁰: equal to the estimate made from logarithms."""
    q, k, v = queries * draw(1, 2, 9, 64), keys * draw(1, 2, 9, 64), draw(1, 2, 9, 64)
    projection = orthogonal_gaussian(99, 64)
    log_scores = log_features(q, projection)[..., :, None, :] + log_features(k, projection)[..., None, :, :]
    scores = log_scores.logsumexp(-1)
    if causal:
        scores = scores.masked_fill(torch.ones(9, 9).triu(1) > 0, -torch.inf)
    torch.testing.assert_close(fast(q, k, v, projection, None, causal), scores.softmax(-1) @ v, rtol=1e-9, atol=1e-9)
    single = fast(q.float(), k.float(), v.float(), projection, None, causal)
    torch.testing.assert_close(single.double(), scores.softmax(-1) @ v, rtol=1e-2, atol=1e-2)
