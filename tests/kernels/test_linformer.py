"""Linformer's operator against its equation, head by head."""

from __future__ import annotations

import pytest
from against_naive import SIZES, compare, draw, padding

from kattn_cli.kernels.linformer import linformer_attention, linformer_attention_naive


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("heads_share", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], heads_share: bool, masked: bool) -> None:
    """The projections are wider than the sequence."""
    n = size[2]
    projection = (1 if heads_share else size[1], 4, n + 2)
    inputs = [draw(*shape) for shape in (size, size, size, projection, projection)]
    compare(linformer_attention, linformer_attention_naive, *inputs, mask=padding(n) if masked else None)
