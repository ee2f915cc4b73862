"""YOSO-E against the transformers library's, by hand, in a limit and with padding."""

from __future__ import annotations

import importlib
import math

import pytest
import torch
from against_naive import draw
from mechanisms import check_attention_matrix, first_tokens, let_through, take_over
from reference_vectors import assert_equal

from kattn_cli.attention.yoso_e import YosoAttention


@pytest.mark.parametrize(("padded", "window"), [(False, None), (True, None), (False, 5)])
def test_equals_transformers(padded: bool, window: int | None) -> None:
    """Output and all gradients. Where that library masks it gives the convolution the wrong sign and scale."""
    library = importlib.import_module("transformers.models.yoso.modeling_yoso")
    config = library.YosoConfig(hidden_size=24, num_attention_heads=3, use_expectation=True, conv_window=window)
    theirs = library.YosoSelfAttention(config).double().eval()
    ours = YosoAttention(24, 3, seq_len=11, gradient="lower-bound", conv_kernel_size=window or 0).double()
    assert ours.tau == config.hash_code_len
    parts = (theirs.query, theirs.key, theirs.value)
    take_over(ours.qkv, *parts)
    let_through(ours.proj)
    if ours.conv is not None:
        ours.conv.load_state_dict(theirs.conv.state_dict())
    mask = first_tokens(11, 11, 7 if padded else 11)
    x, cotangent = draw(2, 11, 24).requires_grad_(), draw(2, 11, 24) * mask[..., None]
    outs = ours(x, mask), theirs(x, (mask.double() - 1) * 10_000 if padded else mask.double())[0]
    assert_equal(outs[0][mask], outs[1][mask])
    wanted = ([x, ours.qkv.weight, ours.qkv.bias], [x, *(p.weight for p in parts), *(p.bias for p in parts)])
    if ours.conv is not None:
        wanted[0].append(ours.conv.weight)
        wanted[1].append(theirs.conv.weight)
    found = torch.autograd.grad((outs[0] * cotangent).sum(), wanted[0])
    expected = torch.autograd.grad((outs[1] * cotangent).sum(), wanted[1])
    stacked = [expected[0], torch.cat(expected[1:4]), torch.cat(expected[4:7]), *expected[7:]]
    for mine, other in zip(found, stacked, strict=True):
        assert_equal(mine, other)


def test_by_hand() -> None:
    """A query, a key at 60° and one at 90°: (2/3)² and (1/2)² of their values, scaled to unit norm."""
    module = YosoAttention(2, 1, seq_len=2, tau=2)
    q = torch.tensor([[[[3.0, 0.0], [3.0, 0.0]]]], dtype=torch.float64)
    k = torch.tensor([[[[0.5, math.sqrt(0.75)], [0.0, 7.0]]]], dtype=torch.float64)
    out = module.operate(q, k, torch.eye(2, dtype=torch.float64)[None, None], None)
    row = torch.tensor([4 / 9, 1 / 4], dtype=torch.float64)
    assert_equal(out, (row / row.norm()).expand(1, 1, 2, 2))


def test_many_bits_attend_to_the_nearest_key() -> None:
    module = YosoAttention(8, 1, seq_len=5, tau=2000).double()
    k, v = draw(2, 1, 1, 5, 8)
    out = module.operate(2 * k, k, v, None)
    assert_equal(out, v / v.norm(dim=-1, keepdim=True))


@pytest.mark.parametrize("conv_kernel_size", [0, 3])
def test_attention_matrix_makes_the_output(conv_kernel_size: int) -> None:
    module = YosoAttention(24, 3, seq_len=9, conv_kernel_size=conv_kernel_size).double()
    check_attention_matrix(module, draw(2, 9, 24), first_tokens(9, 9, 4))


def test_refuses_what_it_has_not() -> None:
    with pytest.raises(ValueError, match=r"^conv_kernel_size = 4 is even, and has no middle$"):
        YosoAttention(24, 3, seq_len=9, conv_kernel_size=4)
    with pytest.raises(ValueError, match=r"^has no causal form$"):
        YosoAttention(24, 3, seq_len=9, causal=True)
