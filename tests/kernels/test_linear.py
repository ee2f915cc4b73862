"""Linear attention's operator against the equation, outputs and gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from against_naive import PADDINGS, compare, draw
from torch import Tensor

from kattn_cli.kernels.linear import CHUNK, linear_attention, linear_attention_decode, linear_attention_naive

LENGTHS = [1, 7, 63, 2 * CHUNK + 5]
MaskOf = Callable[[int], Tensor | None]


def draw_features(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Positive features of queries and keys, and values."""
    return draw(2, 3, n, 6).abs() + 0.1, draw(2, 3, n, 6).abs() + 0.1, draw(2, 3, n, 4)


each_mask = pytest.mark.parametrize("mask_of", PADDINGS)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
@each_mask
def test_equals_the_equation(n: int, causal: bool, normalise: bool, mask_of: MaskOf) -> None:
    compare(
        partial(linear_attention, causal=causal, normalise=normalise),
        partial(linear_attention_naive, causal=causal, normalise=normalise),
        *draw_features(n),
        mask=mask_of(n),
    )


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("causal", [False, True])
@each_mask
def test_log_weights_are_factors_of_the_keys(n: int, causal: bool, mask_of: MaskOf) -> None:
    log_weight = 3 * draw(2, 3, n, 1)
    compare(
        partial(linear_attention, causal=causal, log_weight=log_weight),
        lambda q, k, v, mask: linear_attention_naive(q, k * log_weight.exp(), v, mask, causal),
        *draw_features(n),
        mask=mask_of(n),
    )


def test_log_weights_beyond_floating_point() -> None:
    """exp(±800) is no float64; the past is not lost behind a larger future, nor is the future in the past."""
    phi_q, phi_k, v = draw_features(CHUNK + 9)
    log_weight = torch.full_like(v[..., :1], -800.0)
    log_weight[..., CHUNK + 2 :, :] = 800.0
    out = linear_attention(phi_q, phi_k, v, causal=True, log_weight=log_weight)
    for part in (slice(0, CHUNK + 2), slice(CHUNK + 2, None)):
        alone = linear_attention(phi_q[..., part, :], phi_k[..., part, :], v[..., part, :], causal=True)
        torch.testing.assert_close(out[..., part, :], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("normalise", [False, True])
def test_decoding_in_pieces(normalise: bool) -> None:
    n = 2 * CHUNK + 5
    phi_q, phi_k, v = draw_features(n)
    log_weight = draw(2, 3, n, 1)
    outs, state = [], None
    pieces = (z.split([1, 6, CHUNK + 9, n - CHUNK - 16], -2) for z in (phi_q, phi_k, v, log_weight))
    for q, k, u, w in zip(*pieces, strict=True):
        out, state = linear_attention_decode(q, k, u, state, normalise=normalise, log_weight=w)
        outs.append(out)
        assert state.sums.shape == (2, 3, 6, 4 + normalise)
    whole = linear_attention(phi_q, phi_k, v, causal=True, normalise=normalise, log_weight=log_weight)
    torch.testing.assert_close(torch.cat(outs, -2), whole, rtol=1e-12, atol=1e-12)
    assert state is not None
    assert state.tokens == n


def test_queries_and_keys_without_features_give_zeros() -> None:
    phi_q, phi_k, v = draw_features(9)
    phi_q[0, :, 3] = 0
    leaves = [z.requires_grad_() for z in (phi_q, phi_k, v)]
    out = linear_attention(phi_q, phi_k, v, mask=torch.tensor([[True] * 9, [False] * 9]))
    assert (out[0, :, 3] == 0).all()
    assert (out[1] == 0).all()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(out.square().sum(), leaves))
