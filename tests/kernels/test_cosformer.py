"""cosFormer's features in linear attention against its equation, outputs and gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from against_naive import PADDINGS, SIZES, compare, draw
from torch import Tensor

from kattn_cli.kernels.cosformer import cosformer_angles, cosformer_features, cosformer_naive
from kattn_cli.kernels.linear import linear_attention


def fast(q: Tensor, k: Tensor, v: Tensor, longest: int, mask: Tensor | None, causal: bool) -> Tensor:
    angles = cosformer_angles(q, longest, mask)
    return linear_attention(cosformer_features(q, angles), cosformer_features(k, angles), v, mask=mask, causal=causal)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask_of", PADDINGS)
def test_equals_the_equation(size: tuple[int, ...], causal: bool, mask_of: Callable[[int], Tensor | None]) -> None:
    n = size[2]
    compare(
        partial(fast, longest=n + 4, causal=causal),
        partial(cosformer_naive, longest=n + 4, causal=causal),
        *(draw(*size) for _ in range(3)),
        mask=mask_of(n),
    )
