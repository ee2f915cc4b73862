"""cosFormer: its weights by hand, its limit, and its invariances."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.attention.cosformer import CosformerAttention
from kattn_cli.attention.heads import join_heads, split_projections


def draw(n: int = 11) -> Tensor:
    return torch.randn(2, n, 24, dtype=torch.float64)


def make(causal: bool = False, seq_len: int = 13) -> CosformerAttention:
    torch.manual_seed(0)
    return CosformerAttention(24, 3, seq_len=seq_len, causal=causal).double()


def test_two_tokens_by_hand() -> None:
    """M = 2: with equal queries and keys the neighbour weighs cos(π/4) and the token itself 1."""
    module = make(seq_len=2)
    with torch.no_grad():
        module.qkv.weight[:48] = 0
        module.qkv.bias[:48] = 1
    x = draw(2)
    near, far = math.sqrt(2) / (1 + math.sqrt(2)), 1 / (1 + math.sqrt(2))
    expected = torch.tensor([[near, far], [far, near]], dtype=torch.float64)
    torch.testing.assert_close(module.attention_matrix(x), expected.expand(2, 3, 2, 2), rtol=1e-12, atol=1e-12)
    v = module.qkv(x)[..., 48:]
    torch.testing.assert_close(module(x), module.proj(expected @ v), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_a_far_horizon_leaves_relu_features_alone(causal: bool) -> None:
    """cos(π/2 · (i − j)/M) is 1 within O(N²/M²)."""
    module, x = make(causal, seq_len=10**8), draw()
    q, k, v = split_projections(module.qkv(x), 3, 3)
    scores = F.relu(q) @ F.relu(k).mT
    scores = scores.tril() if causal else scores
    expected = scores / scores.sum(-1, keepdim=True).clamp(min=1e-12) @ v
    torch.testing.assert_close(module(x), module.proj(join_heads(expected)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_matrix_times_values_is_the_output(causal: bool) -> None:
    module, x = make(causal), draw()
    mask = torch.ones(2, 11, dtype=torch.bool)
    mask[0, 8:] = False
    matrix = module.attention_matrix(x, mask)
    _, _, v = split_projections(module.qkv(x), 3, 3)
    torch.testing.assert_close(module(x, mask), module.proj(join_heads(matrix @ v)), rtol=1e-12, atol=1e-12)
    total = matrix.sum(-1)
    torch.testing.assert_close(total, (total > 0).double())
    assert (total == 0).sum() <= 1  # a query that meets no key's ReLU


@pytest.mark.parametrize("causal", [False, True])
def test_padding_on_either_side_changes_nothing(causal: bool) -> None:
    module, x = make(causal), draw()
    mask = torch.ones(2, 11, dtype=torch.bool)
    mask[0, 7:] = False
    mask[1, :3] = False
    out = module(x, mask)
    torch.testing.assert_close(out[0, :7], module(x[:1, :7])[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(out[1, 3:], module(x[1:, 3:])[0], rtol=1e-12, atol=1e-12)
    assert torch.equal(out[mask], module(torch.where(mask[..., None], x, 100.0), mask)[mask])
    assert module(x, torch.zeros_like(mask)).isfinite().all()


def test_causality_and_decoding() -> None:
    module, x = make(causal=True), draw()
    changed = x.clone()
    changed[:, 5:] += 10
    assert torch.equal(module(x)[:, :5], module(changed)[:, :5])
    outs, state = [], None
    for piece in x.split([1, 4, 6], 1):
        out, state = module.decode(piece, state)
        outs.append(out)
    torch.testing.assert_close(torch.cat(outs, 1), module(x), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="14 tokens, and it was built for 13"):
        module.decode(x[:, :3], state)
    with pytest.raises(ValueError, match="14 tokens, and it was built for 13"):
        module(draw(14))
