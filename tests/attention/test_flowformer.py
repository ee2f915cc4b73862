"""Flow-Attention by hand, with padding, causal and in decoding."""

from __future__ import annotations

import math

import pytest
import torch
from against_naive import draw
from mechanisms import check_attention_matrix, check_causality, check_padding, decode, first_tokens
from reference_vectors import assert_equal

from kattn_cli.attention.flowformer import FlowAttention

each_form = pytest.mark.parametrize("causal", [False, True])


@each_form
def test_equal_flows_average(causal: bool) -> None:
    """Equal queries and equal keys: every conserved flow is 1, so the mean of the values so far, times sigmoid(1)."""
    module, v = FlowAttention(24, 3, seq_len=7, causal=causal).double(), draw(2, 3, 7, 8)
    q, k = (draw(1, 1, 1, 8).expand(2, 3, 7, 8) for _ in range(2))
    mean = v.cumsum(-2) / torch.arange(1, 8)[:, None] if causal else v.mean(-2, keepdim=True).expand_as(v)
    assert_equal(module.operate(q, k, v, None), mean / (1 + math.exp(-1)))


@each_form
def test_one_feature_leaves_the_competition(causal: bool) -> None:
    """d = 1, two tokens, φ(q) = (a, b), φ(k) = (c, e): I and Ô by hand."""
    a, b, c, e = 0.2, 0.7, 0.4, 0.9
    q = torch.tensor([a, b], dtype=torch.float64).logit()[None, None, :, None]
    k = torch.tensor([c, e], dtype=torch.float64).logit()[None, None, :, None]
    out = FlowAttention(1, 1, seq_len=2, causal=causal).operate(q, k, draw(1, 1, 2, 1) * 0 + 1, None).flatten()
    sigmoid = lambda z: 1 / (1 + math.exp(-z))  # noqa: E731
    if causal:  # the first token alone: I = O = ac, Î = Ô = 1
        received = (a / (a * c) + b * 2 / (b * (c + e))) * e / 2  # Ô of the second
        arrived = (c / (a * c) + e * 2 / (e * (a + b))) * b / 2  # Î of the second
        share = 2 * math.exp(received) / (math.exp(1) + math.exp(received))
        expected = [sigmoid(1), sigmoid(arrived) * (c + e * share) / (c + e)]
    else:
        received_c, received_e = 2 * c / (c + e), 2 * e / (c + e)  # Ô = φ(k) Σ φ(q)/I
        share = 2 / (1 + math.exp(received_c - received_e))  # of the second source
        mean = (c * (2 - share) + e * share) / (c + e)
        expected = [sigmoid(2 * a / (a + b)) * mean, sigmoid(2 * b / (a + b)) * mean]
    assert_equal(out, torch.tensor(expected, dtype=torch.float64))


def test_padding_of_the_causal_form_changes_nothing() -> None:
    """The contract has the other form, and no causal sample of padding alone."""
    module = FlowAttention(24, 3, seq_len=9, causal=True).double()
    check_padding(module, draw(3, 9, 24), first_tokens(9, 9, 4, 0))


@each_form
def test_attention_matrix_makes_the_output(causal: bool) -> None:
    module = FlowAttention(24, 3, seq_len=9, causal=causal).double()
    check_attention_matrix(module, draw(2, 9, 24), first_tokens(9, 9, 4))


def test_causal_and_decoded() -> None:
    """Over more than one chunk of the running sum; the state does not grow."""
    module, x = FlowAttention(24, 3, seq_len=300, causal=True).double(), draw(2, 300, 24)
    check_causality(module, x, tolerance=1e-14)
    for sizes in ([1] * 9 + [291], [200, 1, 99], [300]):
        out, states = decode(module, x, sizes)
        assert_equal(out, module(x))
        assert len({sum(each.numel() for each in state.sums) + state.aggregate.sums.numel() for state in states}) == 1
