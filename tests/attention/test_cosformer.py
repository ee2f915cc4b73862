"""cosFormer: its weights by hand, its limit, and its invariances."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from against_naive import draw
from mechanisms import check_attention_matrix, check_padding, first_tokens

from kattn_cli.attention.cosformer import CosformerAttention
from kattn_cli.attention.heads import join_heads, split_projections


def make(causal: bool = False, seq_len: int = 13) -> CosformerAttention:
    return CosformerAttention(24, 3, seq_len=seq_len, causal=causal).double()


def test_two_tokens_by_hand() -> None:
    """M = 2: with equal queries and keys the neighbour weighs cos(π/4) and the token itself 1."""
    module = make(seq_len=2)
    with torch.no_grad():
        module.qkv.weight[:48] = 0
        module.qkv.bias[:48] = 1
    x = draw(2, 2, 24)
    near, far = math.sqrt(2) / (1 + math.sqrt(2)), 1 / (1 + math.sqrt(2))
    expected = torch.tensor([[near, far], [far, near]], dtype=torch.float64)
    torch.testing.assert_close(module.attention_matrix(x), expected.expand(2, 3, 2, 2), rtol=1e-12, atol=1e-12)
    v = module.qkv(x)[..., 48:]
    torch.testing.assert_close(module(x), module.proj(expected @ v), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_a_far_horizon_leaves_relu_features_alone(causal: bool) -> None:
    """cos(π/2 · (i − j)/M) is 1 within O(N²/M²)."""
    module, x = make(causal, seq_len=10**8), draw(2, 11, 24)
    q, k, v = split_projections(module.qkv(x), 3, 3)
    scores = F.relu(q) @ F.relu(k).mT
    scores = scores.tril() if causal else scores
    expected = scores / scores.sum(-1, keepdim=True).clamp(min=1e-12) @ v
    torch.testing.assert_close(module(x), module.proj(join_heads(expected)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_matrix_times_values_is_the_output(causal: bool) -> None:
    total = check_attention_matrix(make(causal), draw(2, 11, 24), first_tokens(11, 8, 11)).sum(-1)
    torch.testing.assert_close(total, (total > 0).double())
    assert (total == 0).sum() <= 1  # a query that meets no key's ReLU


@pytest.mark.parametrize("causal", [False, True])
def test_padding_on_either_side_changes_nothing(causal: bool) -> None:
    """Positions count tokens alone: the contract pads in front in the causal form only."""
    mask = torch.stack((torch.arange(11) < 7, torch.arange(11) >= 3, torch.zeros(11, dtype=torch.bool)))
    check_padding(make(causal), draw(3, 11, 24), mask)


def test_refuses_more_tokens_than_its_horizon() -> None:
    module = make(causal=True)
    _, state = module.decode(draw(2, 11, 24))
    with pytest.raises(ValueError, match="14 tokens, and it was built for 13"):
        module.decode(draw(2, 3, 24), state)
    with pytest.raises(ValueError, match="14 tokens, and it was built for 13"):
        module(draw(2, 14, 24))
