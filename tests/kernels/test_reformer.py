"""Attention in sorted chunks against lists and an N × N mask, outputs and gradients; and what it costs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from against_naive import compare, draw, padding
from torch.utils.flop_counter import FlopCounterMode

from kattn_cli.kernels.reformer import lsh_attention, lsh_attention_naive, lsh_buckets, shared_attention


@pytest.mark.parametrize("n", [1, 7, 31])
@pytest.mark.parametrize("hashes", [1, 3])
@pytest.mark.parametrize("chunk", [1, 3, 40])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"across_buckets": True}], ids=str)
def test_equals_the_equation(n: int, hashes: int, chunk: int, masked: bool, options: dict[str, Any]) -> None:
    given = {"rotations": draw(2, hashes, 5, 3), "chunk": chunk, **options}
    compare(
        partial(lsh_attention, **given),
        partial(lsh_attention_naive, **given),
        *(draw(2, 2, n, 5) for _ in range(3)),
        mask=padding(n) if masked else None,
    )


@pytest.mark.parametrize("causal", [False, True])
def test_one_chunk_and_alike_tokens_are_attention_without_hashing(causal: bool) -> None:
    """Queries in one direction share every bucket."""
    q, k, v = draw(1, 2, 1, 5) * draw(1, 2, 23, 1).abs(), draw(1, 2, 23, 5), draw(1, 2, 23, 5)
    out = lsh_attention(q, k, v, draw(2, 3, 5, 3), 23, causal=causal)
    torch.testing.assert_close(out, shared_attention(q, k, v, causal=causal), rtol=1e-9, atol=1e-9)


def test_buckets_by_hand() -> None:
    """Two rotations in the plane, the axes: the buckets are the nearest of +x, +y, −x, −y; padding is the fifth."""
    q = torch.tensor([[2.0, 1.0], [0.0, 3.0], [-2.0, 1.0], [0.5, -1.0], [2.0, 1.0]])[None, None]
    mask = torch.tensor([[True, True, True, True, False]])
    assert lsh_buckets(q, torch.eye(2)[None, None], mask).tolist() == [[[[0, 1, 2, 3, 4]]]]


def test_a_token_alone_sees_itself() -> None:
    q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])[None, None]
    v = torch.randn(1, 1, 3, 2)
    assert torch.equal(lsh_attention(q, q, v, torch.eye(2)[None, None], 2), v)
    assert torch.equal(shared_attention(q, q, v, causal=True)[:, :, :2], v[:, :, [0, 0]])


@pytest.mark.parametrize("causal", [False, True])
def test_cost_grows_with_n(causal: bool) -> None:
    """For a given number of buckets; those of the causal form each have a chunk that may not be full."""
    counts = []
    for n in (512, 1024, 1536):
        q = k = v = torch.zeros(1, 2, n, 4, device="meta")
        with FlopCounterMode(display=False) as counter:
            lsh_attention(q, k, v, torch.zeros(2, 2, 4, 8, device="meta"), 16, causal=causal)
        counts.append(counter.get_total_flops())
    assert 0 < counts[1] - counts[0] == counts[2] - counts[1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_hashed_exactly(dtype: torch.dtype, autocast: bool) -> None:
    """Among 64 buckets, the largest two projections of some tokens are nearer than half precision tells apart."""
    q, rotations = torch.randn(1, 2, 1025, 64).to(dtype), torch.randn(2, 2, 64, 32).to(dtype)
    with torch.autocast("cpu", dtype, enabled=autocast):
        buckets = lsh_buckets(q, rotations)
    assert torch.equal(buckets, lsh_buckets(q.double(), rotations.double()))
