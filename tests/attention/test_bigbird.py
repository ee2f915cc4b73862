"""BigBird's attention against transformers, against softmax attention, and by hand."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import pytest
import torch
from against_naive import draw
from mechanisms import (
    check_attention_matrix,
    check_padding,
    first_tokens,
    let_through,
    softmax_with_the_weights_of,
    take_over,
)
from reference_vectors import assert_equal

from kattn_cli.attention.bigbird import BigBirdAttention
from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.kernels.block_sparse import block_sparse_attention_naive, window_blocks


@pytest.mark.parametrize("valid", [64, 51])
def test_equals_transformers(valid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their global blocks are the first and the last: with the last moved to the front, ours are the same two.

    Their random blocks are taken over as they draw them, in training.
    """
    modeling = importlib.import_module("transformers.models.big_bird.modeling_big_bird")
    size, rows = 8, 8
    config = modeling.BigBirdConfig(hidden_size=24, num_attention_heads=3, block_size=size, num_random_blocks=1)
    theirs = modeling.BigBirdBlockSparseAttention(config, seed=5).double().train()
    drawn: list[Any] = []
    draw_theirs = theirs._bigbird_block_rand_mask_with_head

    def draw_and_keep(**arguments: Any) -> Any:
        drawn.extend(draw_theirs(**arguments))
        return drawn

    monkeypatch.setattr(theirs, "_bigbird_block_rand_mask_with_head", draw_and_keep)
    x, mask = draw(2, 64, 24), first_tokens(64, 64, valid)
    blocked, band, from_mask, to_mask = modeling.BigBirdModel.create_masks_for_block_sparse_attn(mask.double(), size)
    expected = theirs(
        x,
        band_mask=band,
        from_mask=from_mask,
        to_mask=to_mask,
        from_blocked_mask=blocked,
        to_blocked_mask=blocked,
    )[0]

    ours = BigBirdAttention(24, 3, seq_len=size * rows, block_size=size, random_blocks=1).double()
    random = torch.full((3, rows, 1), -1)
    random[:, 2:] = torch.stack([torch.as_tensor(one) for one in drawn]) + 1
    ours.blocks.copy_(torch.cat((window_blocks(rows, 1, 1, 2).expand(3, -1, -1), random), -1))
    take_over(ours.qkv, theirs.query, theirs.key, theirs.value)
    let_through(ours.proj)
    out = ours(x.roll(size, 1), mask.roll(size, 1)).roll(-size, 1)
    assert_equal(out[mask], expected[mask])


@pytest.mark.parametrize(
    "options",
    [
        {"block_size": 64},
        {"block_size": 4, "random_blocks": 12},
        {"block_size": 4, "random_blocks": 0, "window_blocks": 21},
        {"block_size": 4, "random_blocks": 0, "global_blocks": 13},
        {"block_size": 8, "global_blocks": 1, "random_blocks": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [1, 16, 42])
def test_where_everything_is_seen_it_is_softmax_attention(options: dict[str, Any], n: int) -> None:
    module = BigBirdAttention(24, 3, seq_len=42, **options).double()
    x = draw(2, n, 24)
    softmax = softmax_with_the_weights_of(module)
    if options["block_size"] == 8 and n == 42:
        assert not torch.allclose(module(x), softmax(x))
        return
    assert_equal(module(x), softmax(x))
    assert_equal(module.attention_matrix(x), softmax.attention_matrix(x))


def test_the_pattern() -> None:
    """Each block is in its own list, none twice; the random ones differ between heads and as many as are left."""
    module = BigBirdAttention(24, 3, seq_len=12 * 4 - 1, block_size=4, global_blocks=2, random_blocks=3)
    blocks = module.blocks
    assert blocks.shape == (3, 12, 2 + 3 + 3)
    assert not torch.equal(blocks[0], blocks[1])
    nearby = window_blocks(12, 1, 1, 2).tolist()
    for head in blocks.tolist():
        for row, listed in enumerate(head):
            assert {*nearby[row]} <= {*listed, -1}
            there = [block for block in listed if block >= 0]
            assert row in there
            assert len(set(there)) == len(there) == {0: 5, 1: 6, 2: 7, 11: 7}.get(row, 8)
            assert max(there) < 12
    assert "blocks" in module.state_dict()


def test_who_sees_whom() -> None:
    module = BigBirdAttention(24, 1, seq_len=5, block_size=1, global_blocks=1, random_blocks=0).double()
    seen = module.attention_matrix(draw(1, 5, 24))[0, 0] > 0
    expected = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 0, 1, 1, 1], [1, 0, 0, 1, 1]]
    assert seen.int().tolist() == expected


@pytest.mark.parametrize("n", [1, 7, 63])
def test_equals_an_n_by_n_mask(n: int) -> None:
    """The module's own pattern, cut to a shorter sequence."""
    module = BigBirdAttention(24, 3, seq_len=70, block_size=4).double()
    x, mask = draw(2, n, 24), first_tokens(n, n, n - n // 3)
    q, k, v = split_projections(module.qkv(x), 3, 3)
    rows = -(-n // 4)
    blocks = module.blocks[:, :rows].masked_fill(module.blocks[:, :rows] >= rows, -1)
    expected = block_sparse_attention_naive(q, k, v, blocks, 4, seeing_all=8, mask=mask)
    assert_equal(module(x, mask)[mask], module.proj(join_heads(expected))[mask])


def test_attention_matrix_is_what_multiplies_the_values() -> None:
    module = BigBirdAttention(24, 3, seq_len=43, block_size=4).double()
    matrix = check_attention_matrix(module, draw(2, 43, 24), first_tokens(43, 43, 30))
    assert_equal(matrix.sum(-1), torch.ones(2, 3, 43, dtype=torch.float64))


@pytest.mark.parametrize("n", [40, 11, 8, 5, 1])
def test_padding_changes_nothing(n: int) -> None:
    """In sequences shorter than it was built for, whose last block is full or not."""
    module = BigBirdAttention(24, 3, seq_len=50, block_size=4).double()
    check_padding(module, draw(3, 47, 24), first_tokens(47, 47, n, 0))


def test_pattern_is_kept_with_the_weights() -> None:
    module = BigBirdAttention(24, 3, seq_len=63, block_size=4).double()
    other = BigBirdAttention(24, 3, seq_len=63, block_size=4).double()
    x = draw(2, 63, 24)
    assert not torch.equal(module.blocks, other.blocks)
    other.load_state_dict(module.state_dict())
    assert torch.equal(module(x), other(x))
    assert torch.equal(module(x), copy.deepcopy(module)(x))


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"^window_blocks = 4 is even, and as many are seen on either side$"):
        BigBirdAttention(24, 3, seq_len=9, window_blocks=4)
    with pytest.raises(ValueError, match=r"^10 tokens, and it was built for 9$"):
        BigBirdAttention(24, 3, seq_len=9)(torch.zeros(1, 10, 24))
    with pytest.raises(ValueError, match=r"^has no causal form$"):
        BigBirdAttention(24, 3, seq_len=9, causal=True)


def test_flops_by_hand() -> None:
    """Ten tokens in one head of width 2, each listing four blocks of one (some empty), and the first seeing ten."""
    module = BigBirdAttention(2, 1, seq_len=10, block_size=1, global_blocks=1, random_blocks=0)
    assert module.operator_flops(10) == (10 * 4 + 10) * (4 * 2 + 1 + 5)
