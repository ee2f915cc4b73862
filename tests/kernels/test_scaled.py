"""Scaled Attention's operator equals the equation with S in full."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from against_naive import SIZES, TOLERANCE, compare, draw, padding
from torch import Tensor

from kattn_cli.kernels import scaled
from kattn_cli.kernels.choice import operators
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


@each_form
@pytest.mark.parametrize("last", [None, 3])
def test_slow_forms_the_matrix(causal: bool, masked: bool, last: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values, and none by fused attention."""
    k, v, alpha, s = draw(2, 3, 7, 5), draw(2, 3, 7, 5), draw(1), draw(3, 9, 9)
    mask = padding(7) if masked else None
    options: Any = {"causal": causal, "mask": mask, "last": last}
    expected = symmetric_scaled_values(k, v, alpha, **options), learned_scaled_values(v, s, **options)
    monkeypatch.setattr(scaled, "softmax_attention", None)
    with operators("slow"):
        found = symmetric_scaled_values(k, v, alpha, **options), learned_scaled_values(v, s, **options)
    torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert found[0].shape[-2] == (last or 7)
