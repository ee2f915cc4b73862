"""TSSA equals its equations, outputs and gradients."""

from __future__ import annotations

import pytest
import torch
from against_naive import SIZES, compare, draw, padding

from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.tssa.equations import tssa_naive
from kattn_cli.kernels.tssa.operator import tssa


@pytest.mark.usefixtures("each_version")
@pytest.mark.parametrize("size", [*SIZES, (3, 8, 300, 48), (1, 2, 4097, 3)])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], normalize: bool, masked: bool) -> None:
    compare(
        lambda w, eta, mask: tssa(w, eta, normalize, mask),
        lambda w, eta, mask: tssa_naive(w, eta, normalize, mask),
        draw(*size),
        draw(size[1]),
        mask=padding(size[2])[: size[0]].repeat(2, 1)[: size[0]] if masked else None,
    )


@pytest.mark.usefixtures("each_version")
def test_survives_a_silent_feature() -> None:
    w = draw(1, 2, 5, 3)
    w[..., 0] = 0
    w.requires_grad_()
    out = tssa(w, torch.ones(2, dtype=torch.float64))
    out.sum().backward()
    assert out.isfinite().all()
    assert w.grad is not None
    assert w.grad.isfinite().all()


def test_slow_is_the_equations() -> None:
    w, eta = draw(1, 2, 5, 3), draw(2)
    with operators("slow"):
        assert torch.equal(tssa(w, eta), tssa_naive(w, eta))
