"""Flow-Attention equals its equations with all capacities written out; flows are conserved; nothing overflows."""

from __future__ import annotations

import pytest
import torch
from against_naive import SIZES, compare, draw, padding

from kattn_cli.kernels.flowformer import flow_attention, flow_attention_naive, flow_factors


@pytest.mark.parametrize("size", [*SIZES, (2, 1, 257, 3)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_flow(size: tuple[int, ...], causal: bool, masked: bool) -> None:
    compare(
        lambda q, k, v, mask: flow_attention(q, k, v, causal=causal, mask=mask),
        lambda q, k, v, mask: flow_attention_naive(q, k, v, causal, mask),
        *(draw(*size) for _ in range(3)),
        mask=padding(size[2]) if masked else None,
    )


def test_flow_is_conserved() -> None:
    """What sinks receive of sources that give 1 each is 1 in the mean; what competition deals out is 1 in the mean."""
    q, k = draw(2, 3, 9, 4), draw(2, 3, 9, 4)
    sinks, sources, _ = flow_factors(q, k)
    incoming = (q.sigmoid() * k.sigmoid().sum(-2, keepdim=True)).sum(-1)  # eq. 4
    conserved_incoming = (sinks / q.sigmoid())[..., 0].mul(incoming).logit()
    competition = (sources / k.sigmoid())[..., 0]
    ones = torch.ones(2, 3, dtype=torch.float64)
    torch.testing.assert_close(conserved_incoming.mean(-1), ones, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(competition.mean(-1), ones, rtol=1e-12, atol=1e-12)
    assert conserved_incoming.std() > 0.01
    assert competition.std() > 0.01


@pytest.mark.parametrize("causal", [False, True])
def test_one_source_above_all_does_not_overflow(causal: bool) -> None:
    """Ô of the last source is in the hundreds, beyond what exp holds in float32; it takes all of the competition."""
    n = 400
    q, v = torch.zeros(1, 1, n, 4), torch.randn(1, 1, n, 4)
    k = torch.full((1, 1, n, 4), -20.0)
    k[..., -1, :] = 5
    k.requires_grad_()
    out = flow_attention(q, k, v, causal=causal)
    out.sum().backward()
    assert not flow_attention_naive(q, k, v, causal)[..., -1, :].isfinite().all()
    assert out.isfinite().all()
    assert k.grad is not None
    assert k.grad.isfinite().all()
    in_double = flow_attention(q.double(), k.double(), v.double(), causal=causal)
    torch.testing.assert_close(out.double(), in_double, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("causal", [False, True])
def test_finite_where_the_sigmoid_is_zero(causal: bool) -> None:
    q = torch.full((1, 2, 5, 4), -200.0, requires_grad=True)
    out = flow_attention(q, q, torch.ones(1, 2, 5, 4), causal=causal)
    (grad,) = torch.autograd.grad(out.sum(), q)
    assert out.isfinite().all()
    assert grad.isfinite().all()
