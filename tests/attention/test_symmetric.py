"""Symmetric attention against the authors' numbers."""

from __future__ import annotations

import torch
from reference_vectors import assert_equal, check_forward_backward, fill, load

from kattn_cli.attention.symmetric import SymmetricAttention

THEIRS = {
    "kv.weight": "qkv.weight",
    "kv.bias": "qkv.bias",
    "proj.weight": "proj.weight",
    "proj.bias": "proj.bias",
}


def test_equals_the_authors_program() -> None:
    vector = load("rpc__symmetric_N16_C24_h2")
    module = SymmetricAttention(24, 2, seq_len=16)
    check_forward_backward(fill(module, vector, THEIRS), vector, THEIRS)


def test_attention_matrix_has_a_symmetric_kernel() -> None:
    """Row sums are 1, and A(k, k) times its row normalisers is symmetric."""
    torch.manual_seed(0)
    module = SymmetricAttention(24, 2, seq_len=7).double()
    matrix = module.attention_matrix(torch.randn(2, 7, 24, dtype=torch.float64))
    torch.testing.assert_close(matrix.sum(-1), torch.ones(2, 2, 7, dtype=torch.float64))
    odds = matrix.log() - matrix.log().mT  # log(g_j / g_i): antisymmetric and of rank two
    assert int(torch.linalg.matrix_rank(odds[0, 0], rtol=1e-8)) == 2


def test_standardised_keys_by_the_equation() -> None:
    """``softmax(k̂ k̂ᵀ / √d) v`` for keys of mean 0 and deviation 1 in each token and head."""
    torch.manual_seed(0)
    module = SymmetricAttention(24, 2, seq_len=7, standardise=True).double()
    x = torch.randn(2, 7, 24, dtype=torch.float64)
    k, v = module.kv(x).unflatten(-1, (2, 2, 12)).permute(2, 0, 3, 1, 4)
    k = (k - k.mean(-1, keepdim=True)) / k.std(-1, keepdim=True)
    attended = (k @ k.mT / 12**0.5).softmax(-1) @ v
    assert_equal(module(x), module.proj(attended.transpose(1, 2).flatten(2)))
