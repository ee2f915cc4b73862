"""Softmax attention against timm's and against the authors' numbers."""

from __future__ import annotations

import pytest
import torch
from reference_vectors import BASELINE, check_forward_backward, fill, load_baseline, names
from timm.layers import Attention

from kattn_cli.attention.softmax import SoftmaxAttention


def test_equals_timm_with_its_own_weights() -> None:
    torch.manual_seed(0)
    theirs = Attention(24, num_heads=3, qkv_bias=True).double()
    ours = SoftmaxAttention(24, 3, seq_len=11).double()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 11, 24, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", names("lra_softmax__"))
def test_equals_the_primal_authors_baseline(name: str) -> None:
    vector = load_baseline(name)
    module = SoftmaxAttention(24, 2, seq_len=33)
    check_forward_backward(fill(module, vector, BASELINE), vector, BASELINE)
