"""TSSA against the authors' numbers and its equations."""

from __future__ import annotations

import pytest
import torch
from reference_vectors import check_forward_backward, fill, load, names

from kattn_cli.attention.tssa import TokenStatisticsAttention
from kattn_cli.kernels.tssa import tssa

THEIRS = {
    "u.weight": "qkv.weight",
    "u.bias": "qkv.bias",
    "eta": "temp",
    "proj.weight": "to_out.0.weight",
    "proj.bias": "to_out.0.bias",
}


@pytest.mark.parametrize("name", [name for name in names("tssa__")])
def test_equals_the_authors_program(name: str) -> None:
    vector = load(name)
    module = TokenStatisticsAttention(24, 2, seq_len=16)
    check_forward_backward(fill(module, vector, THEIRS), vector, THEIRS)


def test_one_token_by_hand() -> None:
    """N = 1: ŵ² = 1, so Π = ½ for each of two heads, m = w² (but for 1e-8), out = −w/2 / (1 + w²)."""
    w = torch.tensor([[[[2.0]], [[3.0]]]], dtype=torch.float64)
    found = tssa(w, torch.ones(2, dtype=torch.float64))
    assert found.flatten().tolist() == pytest.approx([-1.0 / 5, -1.5 / 10], rel=1e-6)


def test_is_equivariant_to_the_order_of_tokens() -> None:
    torch.manual_seed(0)
    module = TokenStatisticsAttention(24, 2, seq_len=9).double()
    x, order = torch.randn(2, 9, 24, dtype=torch.float64), torch.randperm(9)
    torch.testing.assert_close(module(x[:, order]), module(x)[:, order], rtol=1e-12, atol=1e-12)
