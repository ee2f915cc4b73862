"""Linformer against the authors' numbers, the linformer package, and softmax attention."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from against_naive import draw
from mechanisms import check_padding, first_tokens, softmax_with_the_weights_of
from reference_vectors import BASELINE, assert_equal, check_forward_backward, fill, load_baseline

from kattn_cli.attention.linformer import LinformerAttention

VARIANTS: list[dict[str, Any]] = [
    {"sharing": "none"},
    {"sharing": "headwise"},
    {"sharing": "key-value"},
    {"convention": "reference"},
]


def test_equals_the_primal_authors_baseline() -> None:
    vector = load_baseline("lra_linformer__pad_N33_C24_h2_k8")
    theirs = {**BASELINE, "e": "attn.E"}
    module = LinformerAttention(24, 2, seq_len=33, k=8, convention="reference")
    check_forward_backward(fill(module, vector, theirs), vector, theirs)


@pytest.mark.parametrize("n", [5, 16])
def test_equals_the_linformer_package(n: int) -> None:
    linformer = importlib.import_module("linformer.linformer")
    theirs = linformer.LinformerSelfAttention(24, 16, k=6, heads=3).double()
    ours = LinformerAttention(24, 3, seq_len=16, k=6, sharing="headwise", qkv_bias=False).double()
    ours.load_state_dict(
        {
            "qkv.weight": torch.cat([theirs.to_q.weight, theirs.to_k.weight, theirs.to_v.weight]),
            "e": theirs.proj_k.T[None],
            "f": theirs.proj_v.T[None],
            "proj.weight": theirs.to_out.weight,
            "proj.bias": theirs.to_out.bias,
        }
    )
    x = draw(2, n, 24)
    assert_equal(ours(x), theirs(x))


def test_projecting_to_the_tokens_themselves_is_softmax_attention() -> None:
    ours = LinformerAttention(24, 3, seq_len=11).double()
    assert ours.f is not None
    with torch.no_grad():
        ours.e.copy_(torch.eye(11))
        ours.f.copy_(torch.eye(11))
    softmax, x = softmax_with_the_weights_of(ours), draw(2, 11, 24)
    assert_equal(ours(x), softmax(x))
    assert_equal(ours.attention_matrix(x), softmax.attention_matrix(x))


@pytest.mark.parametrize(("options", "parameters"), list(zip(VARIANTS, [6, 2, 1, 3], strict=True)))
def test_sharing_is_what_it_says(options: dict[str, Any], parameters: int) -> None:
    module = LinformerAttention(24, 3, seq_len=10, k=4, **options)
    assert sum(p.numel() for name, p in module.named_parameters() if name in ("e", "f")) == parameters * 4 * 10


@pytest.mark.parametrize("options", VARIANTS)
def test_padding_changes_nothing(options: dict[str, Any]) -> None:
    """The contract leaves out ``reference``, and k = 4 with a projection in each head."""
    module = LinformerAttention(24, 3, seq_len=13, k=4, **options).double()
    check_padding(module, draw(3, 13, 24), first_tokens(13, 13, 6, 0))


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"^12 tokens, and it was built for 11$"):
        LinformerAttention(24, 3, seq_len=11)(torch.zeros(1, 12, 24))
    with pytest.raises(ValueError, match="sharing = headwise, but convention = reference"):
        LinformerAttention(24, 3, seq_len=11, sharing="headwise", convention="reference")
    with pytest.raises(ValueError, match="no causal form"):
        LinformerAttention(24, 3, seq_len=11, causal=True)


def test_flops_by_hand() -> None:
    """Two tokens, one head of width 3, one projected key."""
    module = LinformerAttention(3, 1, seq_len=2, k=1)
    projections, attention = 2 * (2 * 2 * 3), 2 * (2 * 3) + 2 + 5 * 2 + 2 * (2 * 3)
    assert module.operator_flops(2) == projections + attention
