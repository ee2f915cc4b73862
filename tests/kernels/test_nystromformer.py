"""Nyström attention against the equation with the inverse itself."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from against_naive import SIZES, compare, draw, few_tokens

from kattn_cli.kernels.nystromformer import nystrom_attention, nystrom_attention_naive, pseudo_inverse

CONVERGED = 24  # iterations after which the inverse is one, for the matrices drawn here


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("landmarks", [3, 8])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], landmarks: int, masked: bool) -> None:
    compare(
        partial(nystrom_attention, landmarks=landmarks, iterations=CONVERGED),
        partial(nystrom_attention_naive, landmarks=landmarks),
        *(3 * draw(*size) for _ in range(3)),
        mask=few_tokens(size[2]) if masked else None,
    )


def test_first_iterate_by_hand() -> None:
    """On the 1-norm 3/2 of this matrix, one step of eq. 11 with numbers."""
    a = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]], dtype=torch.float64)
    z, one = a[0, 0].T / 1.5, torch.eye(2, dtype=torch.float64)
    az = a[0, 0] @ z
    expected = (13 * z - 15 * z @ az + 7 * z @ az @ az - z @ az @ az @ az) / 4
    torch.testing.assert_close(pseudo_inverse(a, 1)[0, 0], expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(a[0, 0] @ pseudo_inverse(a, 8)[0, 0], one, rtol=1e-12, atol=1e-12)


def test_each_inverse_begins_at_its_own_norm_unless_asked_for_the_largest() -> None:
    batch = draw(2, 3, 4, 4).softmax(-1)
    norms = batch.sum(-2).amax(-1)
    assert norms.unique().numel() == 6
    alone = torch.stack([pseudo_inverse(one[None], 2)[0] for one in batch])
    torch.testing.assert_close(pseudo_inverse(batch, 2), alone, rtol=1e-12, atol=1e-12)
    first = pseudo_inverse(batch, 0, over_batch=True)
    torch.testing.assert_close(first, batch.mT / norms.max(), rtol=1e-12, atol=1e-12)


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
