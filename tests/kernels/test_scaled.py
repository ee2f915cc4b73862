"""Scaled Attention's operator equals the equation with S in full."""

from __future__ import annotations

import pytest
from against_naive import SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.kernels.scaled import (
    learned_scaled_values,
    learned_scaling,
    scaled_attention_naive,
    symmetric_scaled_values,
    symmetric_scaling,
)
from kattn_cli.kernels.softmax import softmax_attention

each_size = pytest.mark.parametrize("size", SIZES)
each_form = pytest.mark.parametrize(("causal", "masked"), [(False, False), (False, True), (True, False), (True, True)])


@each_size
@each_form
def test_scalar(size: tuple[int, ...], causal: bool, masked: bool) -> None:
    def fast(q: Tensor, k: Tensor, v: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
        values = symmetric_scaled_values(k, v, alpha, causal=causal, mask=mask)
        return softmax_attention(q, k, values, causal=causal, mask=mask)

    def slow(q: Tensor, k: Tensor, v: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
        return scaled_attention_naive(q, k, v, symmetric_scaling(k, alpha, causal=causal, mask=mask), causal, mask)

    mask = padding(size[2]) if masked else None
    compare(fast, slow, draw(*size), draw(*size), draw(*size), draw(1), mask=mask)


@each_size
@each_form
def test_matrix(size: tuple[int, ...], causal: bool, masked: bool) -> None:
    def fast(q: Tensor, k: Tensor, v: Tensor, s: Tensor, mask: Tensor | None) -> Tensor:
        values = learned_scaled_values(v, s, causal=causal, mask=mask)
        return softmax_attention(q, k, values, causal=causal, mask=mask)

    def slow(q: Tensor, k: Tensor, v: Tensor, s: Tensor, mask: Tensor | None) -> Tensor:
        scaling = learned_scaling(s, q.shape[-2], causal=causal, mask=mask)
        return scaled_attention_naive(q, k, v, scaling, causal, mask)

    longest = size[2] + 3
    s = draw(size[1], longest, longest)
    mask = padding(size[2]) if masked else None
    compare(fast, slow, draw(*size), draw(*size), draw(*size), s, mask=mask)
