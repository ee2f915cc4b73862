"""What the analysis asks of mechanisms: queries, keys and values of a softmax, and singular values of operators."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kattn_cli.attention import attention_classes
from kattn_cli.attention.class_attention import ClassAttention
from kattn_cli.attention.heads import join_heads
from kattn_cli.attention.primal import PrimalAttention
from kattn_cli.attention.tssa import TokenStatisticsAttention
from kattn_cli.attention.xca import CrossCovarianceAttention
from kattn_cli.kernels.softmax import softmax_matrix

WITH_SOFTMAX: dict[str, dict[str, Any]] = {
    "softmax": {},
    "symmetric": {},
    "scaled": {"variant": "scalar"},
    "mssa": {},
    "rpc": {"iterations": 3, "lambda_": 1.0},
}


def module(name: str, **options: Any) -> Any:
    built = attention_classes()[name](24, 3, seq_len=7, **options).double()  # type: ignore[call-arg]
    for parameter in built.parameters():
        nn.init.normal_(parameter, std=0.5)
    return built


@pytest.fixture
def x() -> Tensor:
    return torch.randn(2, 7, 24, dtype=torch.float64)


@pytest.mark.parametrize("name", WITH_SOFTMAX)
def test_kernel_inputs_give_the_output(name: str, x: Tensor) -> None:
    attention = module(name, **WITH_SOFTMAX[name])
    q, k, v = attention.kernel_inputs(x)
    torch.testing.assert_close(attention.proj(join_heads(softmax_matrix(q, k) @ v)), attention(x))


def test_no_other_mechanism_claims_to_be_a_softmax() -> None:
    assert {name for name, kind in attention_classes().items() if hasattr(kind, "kernel_inputs")} == set(WITH_SOFTMAX)


@pytest.mark.parametrize("causal", [False, True])
def test_singular_values_of_tssa_are_those_of_its_operator(causal: bool, x: Tensor) -> None:
    """The operator as a matrix on tokens and features, from the head's output over its input."""
    attention = module("tssa", causal=causal)
    out: list[Tensor] = []
    attention.proj.register_forward_pre_hook(lambda _, args: out.append(args[0]))
    attention(x)
    w = attention.subspace_tokens(x)
    joined = out[0].unflatten(-1, (3, 8)).transpose(1, 2)
    gains = (joined / w).flatten(-2)
    dense = torch.linalg.svdvals(torch.diag_embed(gains))
    torch.testing.assert_close(attention.singular_values(x), dense)


def test_memberships_sum_to_one_over_heads(x: Tensor) -> None:
    attention: TokenStatisticsAttention = module("tssa")
    membership = attention.membership(x)
    assert membership.shape == (2, 3, 7)
    torch.testing.assert_close(membership.sum(1), torch.ones(2, 7, dtype=torch.float64))
    with pytest.raises(ValueError, match="only the form that sees all tokens"):
        module("tssa", causal=True).membership(x)


def test_singular_values_of_xca_are_those_of_its_operator_once(x: Tensor) -> None:
    """Head by head, the linear map from v to the output repeats each of them for every token."""
    attention: CrossCovarianceAttention = module("xca")
    q, k, _ = (part.unflatten(-1, (3, 8)).transpose(1, 2) for part in attention.qkv(x).chunk(3, -1))

    def of_one_head(v: Tensor) -> Tensor:
        return attention.operate(q[:1, :1], k[:1, :1], v.view(1, 1, 7, 8), None).flatten()

    attention.temperature.data = attention.temperature.data[:1]
    dense = torch.func.jacrev(of_one_head)(torch.zeros(56, dtype=torch.float64))
    values = torch.linalg.svdvals(dense)
    torch.testing.assert_close(attention.singular_values(x)[0, 0].repeat_interleave(7), values)


def test_dual_view_of_primal_is_that_of_the_forward_pass(x: Tensor) -> None:
    attention: PrimalAttention = module("primal", s=2, rank_multi=2, convention="reference")
    kernel, e, r = attention.dual_view(x)
    assert kernel.shape == (2, 3, 7, 7)
    assert e.shape == r.shape == (2, 3, 7, 2)
    own, paper = attention.objective(), attention.objective("paper")
    trace = (attention.w_e * attention.w_r).sum((-2, -1)).mean()
    energy = ((e.square() + r.square()) * attention.regulariser[:, None]).sum((-2, -1)).mean(1) / 2
    torch.testing.assert_close(paper, energy - trace)
    torch.testing.assert_close(own, attention.objective("reference"))
    assert not torch.allclose(own, paper)


def test_class_map_is_the_first_row_of_softmax_attention(x: Tensor) -> None:
    attention: ClassAttention = module("class_attention")
    q, k, v = (part.unflatten(-1, (3, 8)).transpose(1, 2) for part in attention.qkv(x).chunk(3, -1))
    torch.testing.assert_close(attention.class_map(x), softmax_matrix(q, k)[:, :, 0])
    mixed = attention.class_map(x)[:, :, None] @ v
    torch.testing.assert_close(attention.proj(join_heads(mixed)), attention(x)[:, :1])
