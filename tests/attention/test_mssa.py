"""MSSA is softmax attention whose three projections are one."""

from __future__ import annotations

import torch
from timm.layers import Attention

from kattn_cli.attention.mssa import SubspaceAttention


def test_equals_timms_attention_with_one_projection_thrice() -> None:
    torch.manual_seed(0)
    ours = SubspaceAttention(24, 3, seq_len=11).double()
    theirs = Attention(24, num_heads=3, qkv_bias=False).double()
    with torch.no_grad():
        theirs.qkv.weight.copy_(ours.u.weight.repeat(3, 1))
    theirs.proj.load_state_dict(ours.proj.state_dict())
    x = torch.randn(2, 11, 24, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-9, atol=1e-9)


def test_one_projection_and_no_bias_on_it() -> None:
    """CRATE's: C² weights to project, C² + C to join."""
    count = sum(parameter.numel() for parameter in SubspaceAttention(24, 3, seq_len=11).parameters())
    assert count == 24 * 24 + 24 * 24 + 24
