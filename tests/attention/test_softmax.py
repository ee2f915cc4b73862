"""Softmax attention against timm's and against the authors' numbers."""

from __future__ import annotations

import torch
from reference_vectors import check_forward_backward, load
from timm.layers import Attention

from kattn_cli.attention.softmax import SoftmaxAttention


def test_equals_timm_with_its_own_weights() -> None:
    torch.manual_seed(0)
    theirs = Attention(24, num_heads=3, qkv_bias=True).double()
    ours = SoftmaxAttention(24, 3, seq_len=11).double()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 11, 24, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-9, atol=1e-9)


def test_equals_the_primal_authors_baseline() -> None:
    vector = load("lra_softmax__nopad_N33_C24_h2")
    for kind in ("weight", "bias"):
        vector[f"qkv.{kind}"] = torch.cat([vector[f"W_{part}.{kind}"] for part in "qkv"])
        vector[f"gradparam.qkv.{kind}"] = torch.cat([vector[f"gradparam.W_{part}.{kind}"] for part in "qkv"])
    theirs = {
        "qkv.weight": "qkv.weight",
        "qkv.bias": "qkv.bias",
        "proj.weight": "ff.weight",
        "proj.bias": "ff.bias",
    }
    module = SoftmaxAttention(24, 2, seq_len=33).double()
    module.load_state_dict({ours: vector[name] for ours, name in theirs.items()})
    check_forward_backward(module, vector, theirs)
