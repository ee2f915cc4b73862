"""Linear attention against the Primal authors' numbers, an independent program, and in its invariances."""

from __future__ import annotations

import importlib

import pytest
import torch
import torch.nn.functional as F
from reference_vectors import assert_equal, check_gradients, fill, load
from torch import Tensor

from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.linear import LinearAttention

THEIRS = {
    "qkv.weight": "qkv.weight",
    "qkv.bias": "qkv.bias",
    "proj.weight": "ff.weight",
    "proj.bias": "ff.bias",
}


def draw(n: int = 11) -> Tensor:
    return torch.randn(2, n, 24, dtype=torch.float64)


def make(causal: bool = False) -> LinearAttention:
    torch.manual_seed(0)
    return LinearAttention(24, 3, seq_len=11, causal=causal).double()


def test_reference_equals_the_primal_authors_baseline() -> None:
    vector = load("lra_linear__pad_N33_C48_h3")
    for kind in ("weight", "bias"):
        vector[f"qkv.{kind}"] = torch.cat([vector[f"W_{part}.{kind}"] for part in "qkv"])
        vector[f"gradparam.qkv.{kind}"] = torch.cat([vector[f"gradparam.W_{part}.{kind}"] for part in "qkv"])
    module = fill(LinearAttention(48, 3, seq_len=33, convention="reference"), vector, THEIRS)
    x = vector["x"].clone().requires_grad_()
    out = module(x, vector["mask"].bool())
    assert_equal(out, vector["out"])
    (out * vector["cotangent"]).sum().backward()
    assert_equal(x.grad, vector["grad_x"])
    check_gradients(module, vector, THEIRS, "gradparam")


def test_reference_has_no_causal_form() -> None:
    with pytest.raises(ValueError, match="convention: reference has no causal form"):
        LinearAttention(24, 3, seq_len=9, causal=True, convention="reference")


@pytest.mark.parametrize("causal", [False, True])
def test_equals_an_independent_program(causal: bool) -> None:
    theirs = importlib.import_module("performer_pytorch.performer_pytorch")
    module, x = make(causal), draw()
    q, k, v = split_projections(module.qkv(x), 3, 3)
    phi_q, phi_k = F.elu(q) + 1, F.elu(k) + 1
    if causal:
        expected = theirs.causal_linear_attention_noncuda(phi_q, phi_k, v, chunk_size=4, eps=0)
    else:
        expected = theirs.linear_attention(phi_q, phi_k, v)
    torch.testing.assert_close(module(x), module.proj(join_heads(expected)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_equal_keys_average_the_values(causal: bool) -> None:
    module, x = make(causal), draw()
    with torch.no_grad():
        module.qkv.weight[24:48] = 0
    v = module.qkv(x)[..., 48:]
    mean = v.cumsum(1) / torch.arange(1, 12)[:, None] if causal else v.mean(1, keepdim=True).expand_as(v)
    torch.testing.assert_close(module(x), module.proj(mean), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_matrix_times_values_is_the_output(causal: bool) -> None:
    module, x = make(causal), draw()
    mask = torch.ones(2, 11, dtype=torch.bool)
    mask[0, 8:] = False
    matrix = module.attention_matrix(x, mask)
    _, _, v = split_projections(module.qkv(x), 3, 3)
    torch.testing.assert_close(module(x, mask), module.proj(join_heads(matrix @ v)), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(matrix.sum(-1), torch.ones_like(matrix.sum(-1)))


@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_nothing(causal: bool) -> None:
    module, x = make(causal), draw()
    mask = torch.ones(2, 11, dtype=torch.bool)
    mask[0, 7:] = False
    mask[1] = False
    out = module(x, mask)
    torch.testing.assert_close(out[0, :7], module(x[:1, :7])[0], rtol=1e-12, atol=1e-12)
    assert torch.equal(out[mask], module(torch.where(mask[..., None], x, 100.0), mask)[mask])
    assert out.isfinite().all()


def test_causality_and_decoding() -> None:
    module, x = make(causal=True), draw()
    changed = x.clone()
    changed[:, 5:] += 10
    assert torch.equal(module(x)[:, :5], module(changed)[:, :5])
    outs, state = [], None
    for piece in x.split([1, 4, 6], 1):
        out, state = module.decode(piece, state)
        outs.append(out)
    torch.testing.assert_close(torch.cat(outs, 1), module(x), rtol=1e-12, atol=1e-12)
