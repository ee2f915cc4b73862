"""Linear attention against the Primal authors' numbers, an independent program, and in its invariances."""

from __future__ import annotations

import importlib

import pytest
import torch
import torch.nn.functional as F
from against_naive import compare, draw
from mechanisms import check_attention_matrix, check_padding, first_tokens, let_through
from reference_vectors import BASELINE, assert_equal, check_forward_backward, fill, load_baseline
from torch import Tensor

from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.linear import LinearAttention


def make(causal: bool = False) -> LinearAttention:
    return LinearAttention(24, 3, seq_len=11, causal=causal).double()


def test_reference_equals_the_primal_authors_baseline() -> None:
    vector = load_baseline("lra_linear__pad_N33_C48_h3")
    module = LinearAttention(48, 3, seq_len=33, convention="reference")
    check_forward_backward(fill(module, vector, BASELINE), vector, BASELINE)


def test_reference_has_no_causal_form() -> None:
    with pytest.raises(ValueError, match="convention: reference has no causal form"):
        LinearAttention(24, 3, seq_len=9, causal=True, convention="reference")


def test_cosine_is_what_the_primal_authors_call_cos_by_hand() -> None:
    """One head of width 2, two tokens along the axes and one of padding: N = 3, so each feature is over 3^¼."""
    module = LinearAttention(2, 1, seq_len=3, feature_map="cosine", convention="reference").double()
    let_through(module.proj)
    with torch.no_grad():
        module.qkv.bias.zero_()
        module.qkv.weight.copy_(torch.cat([torch.eye(2), torch.tensor([[0.0, 2.0], [-2.0, 0.0]]), torch.eye(2)]))
    x = torch.tensor([[[3.0, 4.0], [0.0, 5.0], [7.0, 7.0]]], dtype=torch.float64)
    # q: (0.6, 0.8), (0, 1); k: (0.8, −0.6), (1, 0), so that q kᵀ = [[0, 0.6], [−0.6, 0]]; v = x.
    expected = [[0.6 * 0.0, 0.6 * 5.0], [-0.6 * 3.0, -0.6 * 4.0]]
    found = module(x, first_tokens(3, 2))[0, :2]
    assert_equal(found, torch.tensor(expected, dtype=torch.float64) / 3**0.5)


@pytest.mark.parametrize("lengths", [None, (11, 4)])
def test_cosine_equals_the_equation_with_gradients(lengths: tuple[int, int] | None) -> None:
    """``Σⱼ cos(qᵢ, kⱼ) vⱼ / √N`` over the tokens that are there."""
    module = LinearAttention(24, 3, seq_len=11, feature_map="cosine", convention="reference").double()
    mask = None if lengths is None else first_tokens(11, *lengths)

    def equation(x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = split_projections(module.qkv(x), 3, 3)
        cosines = F.cosine_similarity(q[..., :, None, :], k[..., None, :, :], dim=-1)
        there = cosines if mask is None else cosines * mask[:, None, None, :]
        return module.proj(join_heads(there @ v / 11**0.5))[:, None]

    compare(lambda x, mask: module(x, mask)[:, None], equation, draw(2, 11, 24), mask=mask)


def test_cosine_has_no_normaliser() -> None:
    with pytest.raises(ValueError, match="feature_map: cosine needs convention: reference"):
        LinearAttention(24, 3, seq_len=9, feature_map="cosine")


@pytest.mark.parametrize("causal", [False, True])
def test_equals_an_independent_program(causal: bool) -> None:
    theirs = importlib.import_module("performer_pytorch.performer_pytorch")
    module, x = make(causal), draw(2, 11, 24)
    q, k, v = split_projections(module.qkv(x), 3, 3)
    phi_q, phi_k = F.elu(q) + 1, F.elu(k) + 1
    if causal:
        expected = theirs.causal_linear_attention_noncuda(phi_q, phi_k, v, chunk_size=4, eps=0)
    else:
        expected = theirs.linear_attention(phi_q, phi_k, v)
    torch.testing.assert_close(module(x), module.proj(join_heads(expected)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_equal_keys_average_the_values(causal: bool) -> None:
    module, x = make(causal), draw(2, 11, 24)
    with torch.no_grad():
        module.qkv.weight[24:48] = 0
    v = module.qkv(x)[..., 48:]
    mean = v.cumsum(1) / torch.arange(1, 12)[:, None] if causal else v.mean(1, keepdim=True).expand_as(v)
    torch.testing.assert_close(module(x), module.proj(mean), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_matrix_times_values_is_the_output(causal: bool) -> None:
    matrix = check_attention_matrix(make(causal), draw(2, 11, 24), first_tokens(11, 8, 11))
    torch.testing.assert_close(matrix.sum(-1), torch.ones_like(matrix.sum(-1)))


def test_padding_of_the_causal_form_changes_nothing() -> None:
    """The contract has the other form, and no causal sample of padding alone."""
    check_padding(make(causal=True), draw(2, 11, 24), first_tokens(11, 7, 0))
