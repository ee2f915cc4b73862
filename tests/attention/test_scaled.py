"""Scaled Attention against the authors' numbers, in its limits, with padding and in decoding."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from reference_vectors import check_forward_backward, fill, load

from kattn_cli.attention.scaled import ScaledAttention
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.kernels.softmax import softmax_matrix

Variant = Literal["scalar", "matrix"]
SHARED = {name: name for name in ("qkv.weight", "qkv.bias", "proj.weight", "proj.bias")}
each_variant = pytest.mark.parametrize("variant", ["scalar", "matrix"])
each_form = pytest.mark.parametrize("causal", [False, True])


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def build(variant: Variant, seq_len: int, causal: bool = False) -> ScaledAttention:
    """With an S that is not 0."""
    module = ScaledAttention(24, 3, seq_len=seq_len, causal=causal, variant=variant).double()
    with torch.no_grad():
        (module.s if variant == "matrix" else module.alpha).normal_()
    return module


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


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
    softmax = SoftmaxAttention(24, 3, seq_len=9, causal=causal).double()
    softmax.load_state_dict(ours.state_dict(), strict=False)
    x = draw(2, 9, 24)
    assert_close(ours(x), softmax(x))
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
    assert_close(module.operate(q, k, v, None), softmax_matrix(q, k) @ (v - v.mean(-2, keepdim=True)))


@each_variant
@each_form
def test_attention_matrix_makes_the_output(variant: Variant, causal: bool) -> None:
    module, x = build(variant, 9, causal), draw(2, 9, 24)
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    q, k, v = module.qkv(x).unflatten(-1, (3, 3, 8)).permute(2, 0, 3, 1, 4)
    there = mask[:, None, :, None]
    assert_close(module.attention_matrix(x) @ v, module.operate(q, k, v, None))
    assert_close(module.attention_matrix(x, mask) @ v * there, module.operate(q, k, v, mask) * there)


@each_variant
@each_form
def test_padding_changes_nothing(variant: Variant, causal: bool) -> None:
    module, x, lengths = build(variant, 9, causal), draw(2, 9, 24), (9, 4)
    mask = torch.arange(9) < torch.tensor(lengths)[:, None]
    out = module(x, mask)
    assert_close(module(torch.where(mask[..., None], x, 100.0), mask)[mask], out[mask])
    for sample, length in enumerate(lengths):
        assert_close(out[sample, :length], module(x[sample : sample + 1, :length])[0])
    assert module(x, torch.zeros_like(mask)).isfinite().all()


@each_variant
def test_causal_and_decoded(variant: Variant) -> None:
    module, x = build(variant, 9, causal=True), draw(2, 9, 24)
    out, changed = module(x), x.clone()
    changed[:, 5:] += 1
    torch.testing.assert_close(module(changed)[:, :5], out[:, :5], rtol=0, atol=1e-14)
    assert not torch.allclose(module(changed)[:, 5:], out[:, 5:])
    for chunks in ([1] * 9, [4, 1, 3, 1], [9]):
        state, parts = None, []
        for piece in x.split(chunks, 1):
            part, state = module.decode(piece, state)
            parts.append(part)
        assert_close(torch.cat(parts, 1), out)


def test_matrix_is_tied_to_positions() -> None:
    module = build("matrix", 4, causal=True)
    for call in (module, module.attention_matrix, module.decode):
        with pytest.raises(ValueError, match=r"^5 tokens, and it was built for 4$"):
            call(draw(1, 5, 24))
    assert build("scalar", 4)(draw(1, 5, 24)).shape == (1, 5, 24)
