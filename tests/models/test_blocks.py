"""The blocks of ToST and XCiT against the authors' numbers, and CRATE's feed-forward by hand."""

from __future__ import annotations

import pytest
import torch
from reference_vectors import assert_equal, check_forward_backward, fill, load
from torch import nn

from kattn_cli.attention.class_attention import ClassAttention
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.attention.tssa import TokenStatisticsAttention
from kattn_cli.attention.xca import CrossCovarianceAttention
from kattn_cli.models.blocks import Block, ClassBlock, Ista

THEIRS = {"ls1.gamma": "gamma1", "ls2.gamma": "gamma2"}
THEIRS_TSSA = {
    "attn.u.weight": "attn.qkv.weight",
    "attn.u.bias": "attn.qkv.bias",
    "attn.eta": "attn.temp",
    "attn.proj.weight": "attn.to_out.0.weight",
    "attn.proj.bias": "attn.to_out.0.bias",
}


def check(block: nn.Module, vector: str, theirs: dict[str, str]) -> None:
    names = {ours: theirs.get(ours, ours) for ours, _ in block.named_parameters()}
    numbers = load(vector)
    check_forward_backward(fill(block, numbers, names), numbers, names)


def test_blocks_equal_the_authors() -> None:
    tssa = Block(24, TokenStatisticsAttention(24, 2, seq_len=16), layer_scale=1.0)
    check(tssa, "tost_block__AttentionTSSA_N16_C24_h2", {**THEIRS, **THEIRS_TSSA})
    xca = Block(24, CrossCovarianceAttention(24, 2, seq_len=16), layer_scale=1.0)
    check(xca, "tost_block__XCA_N16_C24_h2", THEIRS)


def test_class_block_equals_the_authors() -> None:
    block = ClassBlock(24, ClassAttention(24, 2, seq_len=17))
    check(block, "tost_clsblock__tokensnorm1_N17_C24_h2", THEIRS)


def test_class_block_without_tokens_norm_by_its_equations() -> None:
    """XCiT's ``tokens_norm: false``: CLS alone goes through norm₂, and the others come out as 2·(x + γ₁·norm₁(x))."""
    torch.manual_seed(0)
    block = ClassBlock(8, ClassAttention(8, 2, seq_len=5), layer_scale=0.5, tokens_norm=False).double()
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    gamma1, gamma2 = block.ls1.gamma, block.ls2.gamma

    def norm(z: torch.Tensor, of: nn.LayerNorm) -> torch.Tensor:
        variance = z.var(-1, unbiased=False, keepdim=True)
        return (z - z.mean(-1, keepdim=True)) / (variance + 1e-6).sqrt() * of.weight + of.bias

    z = norm(x, block.norm1)
    cls = norm(x[:, :1] + gamma1 * block.attn(z)[:, :1], block.norm2)
    cls = cls + gamma2 * block.mlp(cls)
    others = 2 * (x[:, 1:] + gamma1 * z[:, 1:])
    assert_equal(block(x), torch.cat((cls, others), 1))


def test_block_with_layer_scale_and_norm_eps_by_its_equations() -> None:
    """``x + γ₁·attn(norm(x))``, then ``x + γ₂·mlp(norm(x))``, with ε in the norms."""
    torch.manual_seed(0)
    block = Block(8, SoftmaxAttention(8, 2, seq_len=5), layer_scale=0.25, norm_eps=0.1).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)

    def norm(z: torch.Tensor) -> torch.Tensor:
        return (z - z.mean(-1, keepdim=True)) / (z.var(-1, unbiased=False, keepdim=True) + 0.1).sqrt()

    mixed = x + 0.25 * block.attn(norm(x))
    assert_equal(block(x), mixed + 0.25 * block.mlp(norm(mixed)))


def test_ista_by_hand() -> None:
    """D x = (2, 0), so x − D x = (−1, 2) and Dᵀ of it is (0, −1); what falls below zero is cut off."""
    ista = Ista(2).double()
    ista.dictionary.data = torch.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    x = torch.tensor([[1.0, 2.0], [0.005, -1.0]], dtype=torch.float64)
    expected = [[1 - 0.01, 2 - 0.1 - 0.01], [0.0, 0.0]]
    assert_equal(ista(x), torch.tensor(expected, dtype=torch.float64))


def test_ista_replaces_the_residual_stream() -> None:
    torch.manual_seed(0)
    block = Block(8, SoftmaxAttention(8, 2, seq_len=5), feed_forward="ista", layer_scale=0.5).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    mixed = x + 0.5 * block.attn(block.norm1(x))
    assert_equal(block(x), block.mlp(block.norm2(mixed)))
    assert (block(x) >= 0).all()
    assert isinstance(block.ls2, nn.Identity)


def test_stochastic_depth_skips_both_branches() -> None:
    block = Block(8, SoftmaxAttention(8, 2, seq_len=5), drop_path=0.5)
    torch.manual_seed(0)
    x = torch.randn(64, 5, 8)
    untouched = (block(x) == x).all(-1).all(-1).double().mean().item()
    assert untouched == pytest.approx(0.25, abs=0.1)
    assert not (block.eval()(x) == x).all(-1).all(-1).any()
