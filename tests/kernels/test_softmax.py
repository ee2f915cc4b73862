"""Fused softmax attention equals the equation; masks and causality do what they say."""

from __future__ import annotations

import pytest
import torch
from against_naive import SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.kernels import softmax
from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.masks import visible
from kattn_cli.kernels.softmax import softmax_attention, softmax_attention_naive, softmax_matrix


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], causal: bool, masked: bool) -> None:
    compare(
        lambda q, k, v, mask: softmax_attention(q, k, v, causal=causal, mask=mask),
        lambda q, k, v, mask: softmax_attention_naive(q, k, v, causal, mask),
        draw(*size),
        draw(*size),
        draw(*size),
        mask=padding(size[2]) if masked else None,
    )


def test_the_last_queries_see_all_before_them() -> None:
    q, k, v = draw(3, 2, 3, 7, 5).unbind(0)
    whole = softmax_attention(q, k, v, causal=True)
    torch.testing.assert_close(softmax_attention(q[:, :, 4:], k, v, causal=True), whole[:, :, 4:])


def test_what_is_visible() -> None:
    mask = torch.tensor([[False, True, False], [False, False, False]])
    assert visible(None, False, 3, 3, mask.device) is None
    keys = visible(mask, False, 3, 3, mask.device)
    assert keys is not None
    assert keys[:, 0].int().tolist() == [[[0, 1, 0]], [[1, 1, 1]]]
    causal = visible(mask, True, 2, 3, mask.device)
    assert causal is not None
    assert causal[:, 0].int().tolist() == [[[0, 1, 0], [0, 1, 1]], [[0, 1, 0], [0, 0, 1]]]


def test_slow_is_the_equation_but_with_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = draw(3, 2, 3, 7, 5).unbind(0)
    mask = padding(7)
    dropped = torch.zeros_like(q)
    expected = softmax_attention_naive(q, k, v, True, mask)
    monkeypatch.setattr(softmax.F, "scaled_dot_product_attention", lambda *_, **__: dropped)
    with operators("slow"):
        assert torch.equal(softmax_attention(q, k, v, causal=True, mask=mask), expected)
        assert softmax_attention(q, k, v, dropout=0.5) is dropped
    assert softmax_attention(q, k, v) is dropped


def gradients_of_values(scale: float, d: int) -> tuple[Tensor, Tensor, Tensor, float]:
    """By the fused and by the slow operator in float32, and exactly; and the largest score."""
    q, k, v, cotangent = torch.randn(4, 1, 2, 197, d).unbind(0)
    q, k, found = scale * q, scale * k, []
    for version, dtype in (("fast", torch.float32), ("slow", torch.float32), ("slow", torch.float64)):
        values = v.to(dtype).requires_grad_()
        with operators(version):
            out = softmax_attention(q.to(dtype).requires_grad_(), k.to(dtype), values)
        found.append(torch.autograd.grad(out, values, cotangent.to(dtype))[0])
    return found[0], found[1], found[2], (q @ k.mT).abs().max().item() / d**0.5


@pytest.mark.parametrize(("scale", "d"), [(1, 48), (10, 48), (30, 48), (1e3, 16), (1e6, 16), (1e6, 64)])
def test_gradients_of_large_scores(scale: float, d: int) -> None:
    """Those of the fused operator bear the rounding of scores of up to 10⁴; where √d is a power of two, of any."""
    fused, slow, exact, largest = gradients_of_values(scale, d)
    assert (slow - exact).norm() < 1e-4 * exact.norm()
    assert (fused - exact).norm() < max(1e-4, largest * 2**-22 if d == 48 else 0) * exact.norm()


@pytest.mark.skipif("AVX" not in torch.backends.cpu.get_cpu_capability(), reason="rounds in other places")
def test_gradients_of_scores_beyond_float32() -> None:
    """As documented, and no longer to be, once this fails: torch's operator then does as the slow one."""
    fused, slow, exact, largest = gradients_of_values(1e6, 48)
    assert largest > 1e9
    assert not fused.isfinite().all()
    assert (slow - exact).norm() < 1e-6 * exact.norm()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_products_of_half_precision_are_exact(dtype: torch.dtype, autocast: bool) -> None:
    """Vectors of length 320, whose products float16 does not reach, and float32 to 0.01: matrix and slow operator."""
    q, k, v = (40 * torch.ones(1, 1, 7, 64) + torch.randn(3, 1, 1, 7, 64)).to(dtype).unbind(0)
    with torch.autocast("cpu", dtype, enabled=autocast):
        matrix, out = softmax_matrix(q, k), softmax_attention_naive(q, k, v)
    assert (matrix.dtype, out.dtype) == (torch.float32, dtype)
    torch.testing.assert_close(matrix.double(), softmax_matrix(q.double(), k.double()), rtol=1e-2, atol=0)
    expected = softmax_attention_naive(q.double(), k.double(), v.double())
    torch.testing.assert_close(out.double(), expected, rtol=torch.finfo(dtype).eps, atol=0)
