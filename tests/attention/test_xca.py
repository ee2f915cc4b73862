"""XCA against the authors' numbers and timm's."""

from __future__ import annotations

import torch
from reference_vectors import check_forward_backward, fill, load
from timm.models.xcit import XCA

from kattn_cli.attention.xca import CrossCovarianceAttention

THEIRS = {
    "qkv.weight": "qkv.weight",
    "qkv.bias": "qkv.bias",
    "temperature": "temperature",
    "proj.weight": "proj.weight",
    "proj.bias": "proj.bias",
}


def test_equals_the_authors_program() -> None:
    vector = load("xca__N16_C24_h2")
    check_forward_backward(fill(CrossCovarianceAttention(24, 2, seq_len=16), vector, THEIRS), vector, THEIRS)


def test_equals_timm() -> None:
    torch.manual_seed(0)
    theirs = XCA(24, num_heads=3, qkv_bias=True).double()
    torch.nn.init.uniform_(theirs.temperature, 0.5, 2)
    state = theirs.state_dict()
    ours = CrossCovarianceAttention(24, 3, seq_len=11).double()
    ours.load_state_dict({**state, "temperature": state["temperature"].flatten()})
    x = torch.randn(2, 11, 24, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-9, atol=1e-9)
