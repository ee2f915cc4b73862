"""Nyström attention against the authors' numbers, two independent programs, and softmax attention."""

from __future__ import annotations

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
from reference_vectors import BASELINE, assert_equal, check_forward_backward, fill, load_baseline

from kattn_cli.attention.nystromformer import NystromAttention


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lra_nystrom__nopad_N16_C24_h2_m16_equalseq", {"landmarks": 16}),
        ("lra_nystrom__pad_N64_C32_h4_m8_conv5", {"landmarks": 8, "conv_kernel_size": 5}),
    ],
)
def test_equals_the_primal_authors_baseline(name: str, options: dict[str, Any]) -> None:
    vector = load_baseline(name)
    theirs = {**BASELINE, "conv.weight": "attn.conv.weight"} if "conv_kernel_size" in options else BASELINE
    _, n, dim = vector["x"].shape
    module = NystromAttention(dim, int(vector["hp_num_heads"]), seq_len=n, convention="reference", **options)
    check_forward_backward(fill(module, vector, theirs), vector, theirs)


@pytest.mark.parametrize(("landmarks", "convolution"), [(8, 1), (8, 5), (32, 3)])
@pytest.mark.parametrize("convention", ["paper", "reference"])
def test_equals_transformers(landmarks: int, convolution: int, convention: Any) -> None:
    """Their ``init_option`` other than ``original`` takes the norm of each matrix."""
    modeling = importlib.import_module("transformers.models.nystromformer.modeling_nystromformer")
    config = modeling.NystromformerConfig(
        hidden_size=24,
        num_attention_heads=3,
        num_landmarks=landmarks,
        segment_means_seq_len=32,
        conv_kernel_size=convolution,
        attention_probs_dropout_prob=0.0,
        inv_coeff_init_option=False,
    )
    theirs = modeling.NystromformerSelfAttention(config).double()
    theirs.init_option = "original" if convention == "reference" else "exact"
    ours = NystromAttention(
        24, 3, seq_len=32, landmarks=landmarks, conv_kernel_size=convolution, convention=convention
    ).double()
    take_over(ours.qkv, theirs.query, theirs.key, theirs.value)
    let_through(ours.proj)
    assert ours.conv is not None
    ours.conv.load_state_dict(theirs.conv.state_dict())
    x = 3 * draw(2, 32, 24)
    assert_equal(ours(x), theirs(x)[0])


def test_equals_the_nystrom_attention_package() -> None:
    package = importlib.import_module("nystrom_attention")
    theirs = package.NystromAttention(24, dim_head=8, heads=3, num_landmarks=8, residual_conv_kernel=5).double()
    ours = NystromAttention(
        24, 3, seq_len=32, landmarks=8, conv_kernel_size=5, convention="reference", qkv_bias=False
    ).double()
    ours.load_state_dict(
        {
            "qkv.weight": theirs.to_qkv.weight,
            "proj.weight": theirs.to_out[0].weight,
            "proj.bias": theirs.to_out[0].bias,
            "conv.weight": theirs.res_conv.weight,
        }
    )
    x = 3 * draw(2, 32, 24)
    assert_equal(ours(x), theirs(x))


@pytest.mark.parametrize("convention", ["paper", "reference"])
def test_as_many_landmarks_as_tokens_are_softmax_attention(convention: Any) -> None:
    module = NystromAttention(24, 3, seq_len=9, landmarks=9, convention=convention).double()
    x = draw(2, 9, 24)
    assert_equal(module(x), softmax_with_the_weights_of(module)(x))


def test_a_sample_with_few_tokens_is_softmax_attention() -> None:
    """Whatever the others' length, and wherever its padding is."""
    module = NystromAttention(24, 3, seq_len=30, landmarks=9).double()
    x = draw(2, 30, 24)
    mask = torch.stack([torch.ones(30, dtype=torch.bool), torch.arange(30) % 4 == 1])
    assert_equal(module(x, mask)[1, mask[1]], softmax_with_the_weights_of(module)(x[1:, mask[1]])[0])


def test_repeated_tokens_are_softmax_attention() -> None:
    """Landmarks that are all the tokens there are leave nothing to approximate, once the inverse converges."""
    module = NystromAttention(24, 3, seq_len=30, landmarks=5, iterations=20).double()
    x = 3 * draw(2, 5, 24).repeat_interleave(6, 1)
    softmax = softmax_with_the_weights_of(module)
    assert_equal(module(x), softmax(x))
    assert_equal(module.attention_matrix(x), softmax.attention_matrix(x))


@pytest.mark.parametrize("n", [40, 11, 8, 5, 1])
def test_padding_changes_nothing(n: int) -> None:
    """More tokens than landmarks, as many, fewer; beside a sample without padding and one of nothing else."""
    module = NystromAttention(24, 3, seq_len=47, landmarks=8, conv_kernel_size=3).double()
    check_padding(module, draw(3, 47, 24), first_tokens(47, 47, n, 0))


def test_only_the_reference_lets_samples_see_each_other() -> None:
    x = 3 * draw(3, 47, 24)
    for convention, alone in (("paper", True), ("reference", False)):
        torch.manual_seed(1)
        module = NystromAttention(24, 3, seq_len=47, landmarks=8, convention=convention).double()  # type: ignore[arg-type]
        assert torch.allclose(module(x)[:1], module(x[:1]), rtol=1e-12, atol=1e-12) is alone


def test_attention_matrix_is_what_multiplies_the_values() -> None:
    module = NystromAttention(24, 3, seq_len=23, landmarks=4, conv_kernel_size=5).double()
    check_attention_matrix(module, draw(2, 23, 24))


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"^conv_kernel_size = 4 is even, and has no middle$"):
        NystromAttention(24, 3, seq_len=9, conv_kernel_size=4)
    with pytest.raises(ValueError, match="no causal form"):
        NystromAttention(24, 3, seq_len=9, causal=True)


def test_flops_by_hand() -> None:
    """Three tokens, one head of width 2, one landmark, one iteration."""
    module = NystromAttention(2, 1, seq_len=3, landmarks=1, iterations=1, conv_kernel_size=1)
    means = 2 * (3 * 2 + 2)
    scores, softmaxes = 7 * (2 * 2 + 1), 7 * 5  # three with the landmark twice, the landmark with itself
    inverse = 3 + 4 * 2 + 4  # norm and quotient; four products, three differences, the quarter
    values = (3 + 1 + 3) * 2 * 2
    assert module.operator_flops(3) == means + scores + softmaxes + inverse + values + 3 * 2 * 3
