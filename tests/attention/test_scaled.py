"""Scaled Attention against the authors' numbers, in its limits, with padding and in decoding."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from against_naive import draw
from mechanisms import check_attention_matrix, check_padding, first_tokens, softmax_with_the_weights_of
from reference_vectors import assert_equal, check_forward_backward, fill, load

from kattn_cli.attention.scaled import ScaledAttention
from kattn_cli.kernels.softmax import softmax_matrix

Variant = Literal["scalar", "matrix"]
SHARED = {name: name for name in ("qkv.weight", "qkv.bias", "proj.weight", "proj.bias")}
each_variant = pytest.mark.parametrize("variant", ["scalar", "matrix"])
each_form = pytest.mark.parametrize("causal", [False, True])


def build(variant: Variant, seq_len: int, causal: bool = False) -> ScaledAttention:
    """With an S that is not 0."""
    module = ScaledAttention(24, 3, seq_len=seq_len, causal=causal, variant=variant).double()
    with torch.no_grad():
        (module.s if variant == "matrix" else module.alpha).normal_()
    return module


@pytest.mark.parametrize(("variant", "name"), [("matrix", "s"), ("scalar", "alpha")])
def test_equals_the_authors_program(variant: Variant, name: str) -> None:
    vector = load(f"scaled__{variant}_N16_C24_h2")
    theirs = {**SHARED, name: "s"}
    module = ScaledAttention(24, 2, seq_len=16, variant=variant)
    check_forward_backward(fill(module, vector, theirs), vector, theirs)


@each_variant
@each_form
def test_is_softmax_attention_at_first(variant: Variant, causal: bool) -> None:
    ours = ScaledAttention(24, 3, seq_len=9, causal=causal, variant=variant).double()
    softmax = softmax_with_the_weights_of(ours, causal)
    x = draw(2, 9, 24)
    assert_equal(ours(x), softmax(x))
    ours(x).square().sum().backward()
    grad = (ours.s if variant == "matrix" else ours.alpha).grad
    assert grad is not None
    assert grad.abs().sum() > 0


def test_centres_the_values() -> None:
    """With S = 1/N in every entry the values' mean is taken away, as kernel PCA centres (Remark 3, equal g)."""
    module = build("matrix", 7)
    with torch.no_grad():
        module.s.fill_(1 / 7)
    q, k, v = draw(3, 2, 3, 7, 8)
    assert_equal(module.operate(q, k, v, None), softmax_matrix(q, k) @ (v - v.mean(-2, keepdim=True)))


@each_variant
@each_form
@pytest.mark.parametrize("mask", [None, first_tokens(9, 9, 4)], ids=["unpadded", "padded"])
def test_attention_matrix_makes_the_output(variant: Variant, causal: bool, mask: torch.Tensor | None) -> None:
    check_attention_matrix(build(variant, 9, causal), draw(2, 9, 24), mask)


@each_variant
def test_padding_of_the_causal_form_changes_nothing(variant: Variant) -> None:
    """The contract has the other form, and no causal sample of padding alone."""
    check_padding(build(variant, 9, causal=True), draw(3, 9, 24), first_tokens(9, 9, 4, 0))


def test_matrix_is_tied_to_positions() -> None:
    module = build("matrix", 4, causal=True)
    for call in (module, module.attention_matrix, module.decode):
        with pytest.raises(ValueError, match=r"^5 tokens, and it was built for 4$"):
            call(draw(1, 5, 24))
    assert build("scalar", 4)(draw(1, 5, 24)).shape == (1, 5, 24)
