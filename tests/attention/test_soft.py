"""SOFT by hand, in its limits, and with padding."""

from __future__ import annotations

import math

import pytest
import torch
from against_naive import draw
from mechanisms import check_attention_matrix, check_padding, first_tokens, let_through
from reference_vectors import assert_equal

from kattn_cli.attention.soft import SoftAttention


def test_two_tokens_by_hand() -> None:
    """One head of width 4, keys at distance 2: the kernel is exp(−4 / (2 · 2)) = 1/e."""
    module = SoftAttention(4, 1, seq_len=2).double()
    with torch.no_grad():
        module.kv.weight.copy_(torch.cat([2 * torch.eye(4), torch.eye(4)]))
        module.kv.bias.zero_()
    let_through(module.proj)
    x = torch.tensor([[[0.0, 0, 0, 0], [1, 0, 0, 0]]], dtype=torch.float64)
    assert_equal(module(x), torch.tensor([[[1 / math.e, 0, 0, 0], [1, 0, 0, 0]]], dtype=torch.float64))
    kernel = torch.tensor([[1, 1 / math.e], [1 / math.e, 1]], dtype=torch.float64)
    assert_equal(module.attention_matrix(x), kernel[None, None])


@pytest.mark.parametrize("n", [1, 8])
def test_equal_tokens_each_gather_all_values(n: int) -> None:
    """The kernel of equal tokens is 1, their landmarks are equal, and ``A`` has rank one."""
    module = SoftAttention(24, 3, seq_len=n, landmarks=4).double()
    x = draw(2, 1, 24).expand(2, n, 24)
    values = module.kv(x)[..., 24:]
    assert_equal(module(x), module.proj(n * values))


def test_repeated_tokens_have_the_kernel_itself() -> None:
    """Landmarks that are all the tokens there are leave nothing to approximate."""
    x = 3 * draw(2, 5, 24).repeat_interleave(6, 1)
    few = SoftAttention(24, 3, seq_len=30, landmarks=5).double()
    many = SoftAttention(24, 3, seq_len=30, landmarks=30).double()
    many.load_state_dict(few.state_dict())
    assert_equal(few(x), many(x))
    assert_equal(few.attention_matrix(x), many.attention_matrix(x))


def test_attention_matrix_is_symmetric_and_multiplies_the_values() -> None:
    module = SoftAttention(24, 3, seq_len=23, landmarks=4).double()
    matrix = check_attention_matrix(module, draw(2, 23, 24))
    assert_equal(matrix, matrix.mT)


@pytest.mark.parametrize("landmarks", [8, 30])
@pytest.mark.parametrize("n", [40, 11, 8, 5, 1])
def test_padding_changes_nothing(n: int, landmarks: int) -> None:
    """More tokens than landmarks, as many, fewer; beside a sample without padding and one of nothing else."""
    module = SoftAttention(24, 3, seq_len=47, landmarks=landmarks).double()
    check_padding(module, draw(3, 47, 24), first_tokens(47, 47, n, 0))


def test_autocast_keeps_the_inverse_exact() -> None:
    """bfloat16 may touch the projections, not the iteration."""
    module = SoftAttention(24, 3, seq_len=200, landmarks=40)
    x = torch.randn(2, 200, 24)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = module(x)
    exact = module.double()(x.double())
    assert (rounded - exact).norm() < 0.05 * exact.norm()


def test_refuses_causal() -> None:
    with pytest.raises(ValueError, match="no causal form"):
        SoftAttention(24, 3, seq_len=9, causal=True)


def test_flops_by_hand() -> None:
    """Three tokens, one head of width 2, one landmark, one iteration."""
    module = SoftAttention(2, 1, seq_len=3, landmarks=1, iterations=1)
    projections = 3 * 4 * (2 * 2 + 1) + 3 * 2 * (2 * 2 + 1)
    means = 3 * 2 + 2
    with_tokens = 3 * 2 + 4 * 2 + 4 * 2 * 2 + 3 * 2 * 2 + 3 * 6  # middle, shifts, norms, products, six for each entry
    with_itself = 2 + 2 * 2 + 2 * 2 * 2 + 2 * 2 + 6
    inverse = 3 + 2 * 2 + 2  # norm, its square and quotient; two products, the double, the difference
    values = (3 + 1 + 3) * 2 * 2
    assert module.flops(3) == projections + means + with_tokens + with_itself + inverse + values
