"""Class attention against the authors' numbers and timm's."""

from __future__ import annotations

import torch
from mechanisms import take_over
from reference_vectors import check_forward_backward, fill, load
from timm.models.cait import ClassAttn

from kattn_cli.attention.class_attention import ClassAttention

THEIRS = {
    "qkv.weight": "qkv.weight",
    "qkv.bias": "qkv.bias",
    "proj.weight": "proj.weight",
    "proj.bias": "proj.bias",
}


def test_equals_the_authors_program() -> None:
    vector = load("class_attn__N16_C24_h2")
    check_forward_backward(fill(ClassAttention(24, 2, seq_len=16), vector, THEIRS), vector, THEIRS)


def test_equals_timm_and_the_other_tokens_pass_through() -> None:
    torch.manual_seed(0)
    theirs = ClassAttn(24, num_heads=3, qkv_bias=True).double()
    ours = ClassAttention(24, 3, seq_len=11).double()
    take_over(ours.qkv, theirs.q, theirs.k, theirs.v)
    ours.proj.load_state_dict(theirs.proj.state_dict())
    x = torch.randn(2, 11, 24, dtype=torch.float64)
    torch.testing.assert_close(ours(x)[:, :1], theirs(x), rtol=1e-9, atol=1e-9)
    assert torch.equal(ours(x)[:, 1:], x[:, 1:])
