"""Performer against the Primal authors' numbers, the package they used, softmax attention, and in its invariances."""

from __future__ import annotations

import importlib

import pytest
import torch
from against_naive import draw
from mechanisms import (
    check_attention_matrix,
    check_causality,
    check_padding,
    first_tokens,
    softmax_with_the_weights_of,
)
from reference_vectors import BASELINE, check_forward_backward, fill, load_baseline

from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.performer import PerformerAttention
from kattn_cli.kernels.performer import REFERENCE_EPSILON

THEIRS = {**BASELINE, "projection": "attn.attn_fn.projection_matrix"}
kernels = pytest.mark.parametrize("kernel", ["softmax", "relu"])
forms = pytest.mark.parametrize("causal", [False, True])


def make(kernel: str = "softmax", causal: bool = False, convention: str = "paper") -> PerformerAttention:
    options = {"kernel": kernel, "convention": convention, "features": 20}
    return PerformerAttention(24, 3, seq_len=11, causal=causal, **options).double()  # type: ignore[arg-type]


def test_reference_equals_the_primal_authors_baseline() -> None:
    vector = load_baseline("lra_performer__nopad_relu_N33_C24_h2_r16")
    assert vector["hp_softmax_kernel_eps"] == REFERENCE_EPSILON
    module = PerformerAttention(24, 2, seq_len=33, features=16, convention="reference")
    check_forward_backward(fill(module, vector, THEIRS), vector, THEIRS)


def test_reference_equals_the_package_under_padding() -> None:
    """As the authors called it: scaled once more, with keys and values of zeros at the padding."""
    theirs = importlib.import_module("performer_pytorch")
    module, x, mask = make(convention="reference"), draw(2, 11, 24), first_tokens(11, 7, 11)
    package = theirs.FastAttention(8, 20).double()
    package.projection_matrix.copy_(module.projection)
    q, k, v = split_projections(module.qkv(x), 3, 3)
    there = mask[:, None, :, None]
    expected = module.proj(join_heads(package(q * 8**-0.25, k * 8**-0.25 * there, v * there)))
    torch.testing.assert_close(module(x, mask), expected, rtol=1e-9, atol=1e-9)
    check_attention_matrix(module, x, mask)


@kernels
@forms
def test_equals_an_independent_program(kernel: str, causal: bool) -> None:
    """The package with its ε taken from the softmax features, on which its stabilisers then have no effect."""
    theirs = importlib.import_module("performer_pytorch.performer_pytorch")
    module, x = make(kernel, causal), draw(2, 11, 24)
    q, k, v = split_projections(module.qkv(x), 3, 3)
    if kernel == "softmax":
        phi_q = theirs.softmax_kernel(q, projection_matrix=module.projection, is_query=True, eps=0)
        phi_k = theirs.softmax_kernel(k, projection_matrix=module.projection, is_query=False, eps=0)
    else:
        phi_q, phi_k = (theirs.generalized_kernel(z, projection_matrix=module.projection) for z in (q, k))
    if causal:
        expected = theirs.causal_linear_attention_noncuda(phi_q, phi_k, v, chunk_size=4, eps=0)
    else:
        expected = theirs.linear_attention(phi_q, phi_k, v)
    torch.testing.assert_close(module(x), module.proj(join_heads(expected)), rtol=1e-9, atol=1e-9)


@forms
def test_many_features_give_softmax_attention(causal: bool) -> None:
    performer = PerformerAttention(24, 3, seq_len=11, causal=causal, features=20_000).double()
    softmax = softmax_with_the_weights_of(performer, causal)
    x = draw(2, 11, 24) / 2
    assert (performer(x) - softmax(x)).abs().max() < 2e-3
    assert softmax(x).std() > 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"causal": True}, "convention: reference has no causal form"),
        ({"kernel": "relu"}, "convention: reference is always kernel: softmax"),
    ],
)
def test_what_the_reference_refuses(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PerformerAttention(24, 3, seq_len=9, convention="reference", **options)  # type: ignore[arg-type]


@kernels
@forms
def test_attention_matrix_times_values_is_the_output(kernel: str, causal: bool) -> None:
    matrix = check_attention_matrix(make(kernel, causal), draw(2, 11, 24), first_tokens(11, 8, 11))
    torch.testing.assert_close(matrix.sum(-1), torch.ones_like(matrix.sum(-1)))


@kernels
def test_padding_of_the_causal_form_changes_nothing(kernel: str) -> None:
    """The contract has the other form, and no causal sample of padding alone."""
    check_padding(make(kernel, causal=True), draw(2, 11, 24), first_tokens(11, 7, 0))


@kernels
def test_causality(kernel: str) -> None:
    """The future may be of any size: features of its keys that dwarf the past's do not change it."""
    check_causality(make(kernel, causal=True), draw(2, 11, 24))
