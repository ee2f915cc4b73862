"""Softmax attention against timm's and against the authors' numbers."""

from __future__ import annotations

import pytest
import torch
from reference_vectors import (
    BASELINE,
    assert_equal,
    check_forward_backward,
    check_outputs,
    fill,
    load,
    load_baseline,
    names,
)
from timm.layers import Attention

from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.kernels.softmax import standardised


def test_equals_timm_with_its_own_weights() -> None:
    torch.manual_seed(0)
    theirs = Attention(24, num_heads=3, qkv_bias=True).double()
    ours = SoftmaxAttention(24, 3, seq_len=11).double()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 11, 24, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", names("lra_softmax__"))
def test_equals_the_primal_authors_baseline(name: str) -> None:
    vector = load_baseline(name)
    module = SoftmaxAttention(24, 2, seq_len=33)
    check_forward_backward(fill(module, vector, BASELINE), vector, BASELINE)


def test_standardised_queries_and_keys_equal_the_authors_program() -> None:
    """The one that logs the projection error: it attends with q and k of mean 0 and deviation 1."""
    vector = load("jproj__N16_C24_h2")
    module = SoftmaxAttention(24, 2, seq_len=16, standardise=True)
    check_outputs(fill(module, vector, {name: name for name in module.state_dict()}), vector)
    q, k, v = module.kernel_inputs(vector["x"])
    assert_equal(q, vector["q_normalised"])
    assert_equal(k, vector["k_normalised"])
    assert_equal(v, vector["v"])


def test_a_token_without_deviation_is_standardised_to_zeros() -> None:
    """As padding can be; its gradient is finite."""
    z = torch.tensor([[3.0, 3.0, 3.0], [1.0, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    assert_equal(standardised(z), torch.tensor([[0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(standardised(z).square().sum(), z)
    assert gradient.isfinite().all()


def test_heads_of_width_one_are_not_standardised() -> None:
    with pytest.raises(ValueError, match="standardise needs heads at least 2 wide, and dim = 4 in 4 are 1"):
        SoftmaxAttention(4, 4, seq_len=3, standardise=True)


def test_queries_may_begin_as_keys_and_then_leave_them() -> None:
    """The matrix of logits is then symmetric, with the biases; the next step may move q and k apart."""
    torch.manual_seed(0)
    module = SoftmaxAttention(8, 2, seq_len=5, tied_start=True)
    torch.nn.init.normal_(module.qkv.bias)
    module.begin()
    x = torch.randn(3, 5, 8)
    q, k, v = module.kernel_inputs(x)
    assert torch.equal(q, k)
    assert not torch.equal(k, v)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    module(x).square().mean().backward()
    optimizer.step()
    q, k, _ = module.kernel_inputs(x)
    assert not torch.allclose(q, k)


def test_queries_of_their_own_stay_as_they_were_drawn() -> None:
    module = SoftmaxAttention(8, 2, seq_len=5)
    drawn = module.qkv.weight.clone()
    module.begin()
    assert torch.equal(module.qkv.weight, drawn)
    assert not torch.equal(drawn[:8], drawn[8:16])
