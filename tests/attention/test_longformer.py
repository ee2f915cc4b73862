"""Longformer's attention against transformers, against softmax attention, and by hand."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from against_naive import draw
from mechanisms import (
    check_attention_matrix,
    check_causality,
    check_padding,
    decode,
    first_tokens,
    let_through,
    softmax_with_the_weights_of,
    take_over,
)
from reference_vectors import assert_equal

from kattn_cli.attention.longformer import LongformerAttention


@pytest.mark.parametrize("global_tokens", [0, 3])
@pytest.mark.parametrize("window", [4, 8])
@pytest.mark.parametrize("valid", [24, 17])
def test_equals_transformers(global_tokens: int, window: int, valid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their softmax is in float32, whatever the inputs; here it is in float64."""
    modeling = importlib.import_module("transformers.models.longformer.modeling_longformer")
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda z, dim, dtype: z.softmax(dim))
    config = modeling.LongformerConfig(
        hidden_size=24, num_attention_heads=3, attention_window=[window], attention_probs_dropout_prob=0.0
    )
    theirs = modeling.LongformerSelfAttention(config, layer_id=0).double()
    ours = LongformerAttention(24, 3, seq_len=24, window=window, global_tokens=global_tokens).double()
    take_over(ours.qkv, theirs.query, theirs.key, theirs.value)
    if global_tokens:
        take_over(ours.qkv_global, theirs.query_global, theirs.key_global, theirs.value_global)
    let_through(ours.proj)
    x, mask = draw(2, 24, 24), first_tokens(24, 24, valid)
    kind = torch.zeros(2, 24, dtype=torch.float64).masked_fill(~mask, -10000)
    kind[:, :global_tokens] = 10000
    expected = theirs(
        x,
        attention_mask=kind,
        is_index_masked=kind < 0,
        is_index_global_attn=kind > 0,
        is_global_attn=global_tokens > 0,
    )[0]
    assert_equal(ours(x, mask)[mask], expected[mask])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 8, 9])
def test_a_window_over_everything_is_softmax_attention(causal: bool, n: int) -> None:
    module = LongformerAttention(24, 3, seq_len=9, causal=causal, window=16).double()
    x = draw(2, n, 24)
    softmax = softmax_with_the_weights_of(module, causal)
    assert_equal(module(x), softmax(x))
    assert_equal(module.attention_matrix(x), softmax.attention_matrix(x))


def test_global_projections_start_as_the_local_ones() -> None:
    """So that tokens which are all global are softmax attention."""
    module = LongformerAttention(24, 3, seq_len=9, window=2, global_tokens=9).double()
    x = draw(2, 9, 24)
    assert_equal(module(x), softmax_with_the_weights_of(module)(x))
    assert not hasattr(LongformerAttention(24, 3, seq_len=9), "qkv_global")


def test_who_sees_whom() -> None:
    x = draw(1, 6, 24)
    seen = LongformerAttention(24, 3, seq_len=6, window=2, global_tokens=1).double().attention_matrix(x)[0] > 0
    expected = [
        [1, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 0, 1, 1, 1, 0],
        [1, 0, 0, 1, 1, 1],
        [1, 0, 0, 0, 1, 1],
    ]
    assert seen.int().tolist() == [expected] * 3
    seen = LongformerAttention(24, 3, seq_len=6, window=4, causal=True).double().attention_matrix(x)[0] > 0
    assert torch.equal(seen[0], torch.ones(6, 6).tril().triu(-2).bool())


def test_attention_matrix_is_what_multiplies_the_values() -> None:
    module = LongformerAttention(24, 3, seq_len=23, window=6).double()
    matrix = check_attention_matrix(module, draw(2, 23, 24), first_tokens(23, 23, 12))
    assert_equal(matrix.sum(-1), torch.ones(2, 3, 23, dtype=torch.float64))


@pytest.mark.parametrize("options", [{"global_tokens": 3}, {"causal": True}], ids=str)
@pytest.mark.parametrize("n", [40, 11, 2, 1])
def test_padding_changes_nothing(options: dict[str, Any], n: int) -> None:
    """With a block that is global in part, and causal. Beside a sample without padding and one of nothing else."""
    module = LongformerAttention(24, 3, seq_len=47, window=10, **options).double()
    check_padding(module, draw(3, 47, 24), first_tokens(47, 47, n, 0))


def test_causality_under_padding() -> None:
    module = LongformerAttention(24, 3, seq_len=47, window=10, causal=True).double()
    check_causality(module, draw(2, 47, 24), first_tokens(47, 47, 31))


@pytest.mark.parametrize("sizes", [[1] * 23, [3, 1, 12, 7], [23]], ids=str)
def test_decoding_keeps_half_a_window(sizes: list[int]) -> None:
    """And that is enough, whatever the pieces' sizes."""
    module = LongformerAttention(24, 3, seq_len=23, window=6, causal=True).double()
    x = draw(2, 23, 24)
    out, states = decode(module, x, sizes)
    assert_equal(out, module(x))
    assert all(keys.shape[-2] <= 3 for keys, _ in states)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"^global_tokens = 2 would see the future: none with causal$"):
        LongformerAttention(24, 3, seq_len=9, causal=True, global_tokens=2)


def test_flops_by_hand() -> None:
    """Nine tokens in one head of width 2: each sees three, but for the first, which sees all and is seen by all."""
    module = LongformerAttention(2, 1, seq_len=9, window=2)
    assert module.operator_flops(9) == 9 * 3 * (4 * 2 + 1 + 5)
    module = LongformerAttention(2, 1, seq_len=9, window=2, global_tokens=1)
    assert module.operator_flops(9) == (9 * 4 + 9) * (4 * 2 + 1 + 5) + 9 * 6 * (2 * 2 + 1)
