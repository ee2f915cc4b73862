"""Performer against the Primal authors' numbers, the package they used, softmax attention, and in its invariances."""

from __future__ import annotations

import importlib

import pytest
import torch
from reference_vectors import check_forward_backward, fill, load
from torch import Tensor

from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.performer import PerformerAttention
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.kernels.performer import REFERENCE_EPSILON

THEIRS = {
    "qkv.weight": "qkv.weight",
    "qkv.bias": "qkv.bias",
    "proj.weight": "ff.weight",
    "proj.bias": "ff.bias",
    "projection": "attn.attn_fn.projection_matrix",
}
kernels = pytest.mark.parametrize("kernel", ["softmax", "relu"])
forms = pytest.mark.parametrize("causal", [False, True])


def draw(n: int = 11) -> Tensor:
    return torch.randn(2, n, 24, dtype=torch.float64)


def make(kernel: str = "softmax", causal: bool = False, convention: str = "paper") -> PerformerAttention:
    torch.manual_seed(0)
    options = {"kernel": kernel, "convention": convention, "features": 20}
    return PerformerAttention(24, 3, seq_len=11, causal=causal, **options).double()  # type: ignore[arg-type]


def test_reference_equals_the_primal_authors_baseline() -> None:
    vector = load("lra_performer__nopad_relu_N33_C24_h2_r16")
    for kind in ("weight", "bias"):
        vector[f"qkv.{kind}"] = torch.cat([vector[f"W_{part}.{kind}"] for part in "qkv"])
        vector[f"gradparam.qkv.{kind}"] = torch.cat([vector[f"gradparam.W_{part}.{kind}"] for part in "qkv"])
    assert vector["hp_softmax_kernel_eps"] == REFERENCE_EPSILON
    module = PerformerAttention(24, 2, seq_len=33, features=16, convention="reference")
    check_forward_backward(fill(module, vector, THEIRS), vector, THEIRS)


def test_reference_equals_the_package_under_padding() -> None:
    """As the authors called it: scaled once more, with keys and values of zeros at the padding."""
    theirs = importlib.import_module("performer_pytorch")
    module, x = make(convention="reference"), draw()
    package = theirs.FastAttention(8, 20).double()
    package.projection_matrix.copy_(module.projection)
    mask = torch.ones(2, 11, dtype=torch.bool)
    mask[0, 7:] = False
    q, k, v = split_projections(module.qkv(x), 3, 3)
    there = mask[:, None, :, None]
    expected = module.proj(join_heads(package(q * 8**-0.25, k * 8**-0.25 * there, v * there)))
    torch.testing.assert_close(module(x, mask), expected, rtol=1e-9, atol=1e-9)
    weighed = module.proj(join_heads(module.attention_matrix(x, mask) @ v))
    torch.testing.assert_close(weighed, expected, rtol=1e-9, atol=1e-9)


@kernels
@forms
def test_equals_an_independent_program(kernel: str, causal: bool) -> None:
    """The package with its ε taken from the softmax features, on which its stabilisers then have no effect."""
    theirs = importlib.import_module("performer_pytorch.performer_pytorch")
    module, x = make(kernel, causal), draw()
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
    torch.manual_seed(0)
    performer = PerformerAttention(24, 3, seq_len=11, causal=causal, features=20_000).double()
    softmax = SoftmaxAttention(24, 3, seq_len=11, causal=causal).double()
    softmax.load_state_dict({k: z for k, z in performer.state_dict().items() if k != "projection"})
    x = draw() / 2
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
    module, x = make(kernel, causal), draw()
    mask = torch.ones(2, 11, dtype=torch.bool)
    mask[0, 8:] = False
    matrix = module.attention_matrix(x, mask)
    _, _, v = split_projections(module.qkv(x), 3, 3)
    torch.testing.assert_close(module(x, mask), module.proj(join_heads(matrix @ v)), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(matrix.sum(-1), torch.ones_like(matrix.sum(-1)))


@kernels
@forms
@pytest.mark.parametrize("loud", [1.0, 100.0])
def test_padding_changes_nothing(kernel: str, causal: bool, loud: float) -> None:
    module, x = make(kernel, causal), draw()
    mask = torch.ones(2, 11, dtype=torch.bool)
    mask[0, 7:] = False
    mask[1] = False
    out = module(x, mask)
    torch.testing.assert_close(out[0, :7], module(x[:1, :7])[0], rtol=1e-12, atol=1e-12)
    assert torch.equal(out[mask], module(torch.where(mask[..., None], x, loud), mask)[mask])
    assert out.isfinite().all()


@kernels
def test_causality_and_decoding(kernel: str) -> None:
    """The future may be of any size: features of its keys that dwarf the past's do not change it."""
    module, x = make(kernel, causal=True), draw()
    changed = x.clone()
    changed[:, 5:] *= 100
    assert torch.equal(module(x)[:, :5], module(changed)[:, :5])
    outs, state = [], None
    for piece in x.split([1, 4, 6], 1):
        out, state = module.decode(piece, state)
        outs.append(out)
    torch.testing.assert_close(torch.cat(outs, 1), module(x), rtol=1e-12, atol=1e-12)
