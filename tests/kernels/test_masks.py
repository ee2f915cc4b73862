"""Counts and sums over tokens in half precision are exact."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.kernels.masks import token_counts, total


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_thousands_of_tokens(dtype: torch.dtype, masked: bool) -> None:
    """bfloat16 counts to 256, float16 to 2,048; and this sum is beyond float16."""
    z, mask = torch.full((1, 1, 4097, 1), 20.0, dtype=dtype), torch.ones(1, 4097, dtype=torch.bool) if masked else None
    assert token_counts(z, mask).item() == 4097
    assert token_counts(z, mask, causal=True).flatten().tolist() == list(range(1, 4098))
    assert total(z).item() == 20 * 4097
    assert total(z, causal=True).flatten().tolist() == list(range(20, 20 * 4098, 20))
