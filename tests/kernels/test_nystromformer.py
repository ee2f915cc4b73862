"""Nyström attention against the equation with the inverse itself."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.kernels.nystromformer import nystrom_attention, nystrom_attention_naive, pseudo_inverse

CONVERGED = 24  # iterations after which the inverse is one, for the matrices drawn here


@pytest.mark.parametrize("size", [(2, 2, 1, 4), (2, 3, 7, 5), (2, 3, 63, 5)])
@pytest.mark.parametrize("landmarks", [3, 8])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], landmarks: int, masked: bool) -> None:
    """Outputs at the tokens and the gradients of all inputs. A masked sample may have fewer tokens than landmarks."""
    torch.manual_seed(0)
    n = size[2]
    mask = torch.ones(2, n, dtype=torch.bool)
    if masked:
        mask = torch.stack([torch.arange(n) % 7 != 1, torch.arange(n) <= n // 9])
    inputs = [3 * torch.randn(size, dtype=torch.float64) for _ in range(3)]
    results = []
    for fast in (True, False):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        given = mask if masked else None
        if fast:
            out = nystrom_attention(*leaves, landmarks=landmarks, iterations=CONVERGED, mask=given)
        else:
            out = nystrom_attention_naive(*leaves, landmarks=landmarks, mask=given)
        out = out * mask[:, None, :, None]
        cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
        results.append((out, *torch.autograd.grad(out, leaves, cotangent)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_first_iterate_by_hand() -> None:
    """On the 1-norm 3/2 of this matrix, one step of eq. 11 with numbers."""
    a = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]], dtype=torch.float64)
    z, one = a[0, 0].T / 1.5, torch.eye(2, dtype=torch.float64)
    az = a[0, 0] @ z
    expected = (13 * z - 15 * z @ az + 7 * z @ az @ az - z @ az @ az @ az) / 4
    torch.testing.assert_close(pseudo_inverse(a, 1)[0, 0], expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(a[0, 0] @ pseudo_inverse(a, 8)[0, 0], one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_finite_at_equal_tokens_and_all_padding(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    q = torch.randn(2, 3, 1, 8, dtype=dtype).expand(2, 3, 100, 8).clone().requires_grad_()
    mask = torch.tensor([[True], [False]]).expand(2, 100)
    out = nystrom_attention(q, q, q, landmarks=64, iterations=20, mask=mask)
    out.sum().backward()
    assert out.isfinite().all()
    assert q.grad is not None
    assert q.grad.isfinite().all()
    torch.testing.assert_close(out[0], q[0], rtol=2e-2, atol=2e-2)
