"""TSSA and its causal form equal their equations, outputs and gradients."""

from __future__ import annotations

import pytest
import torch
from against_naive import SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.kernels.tssa import Convention, causal_tssa, causal_tssa_naive, tssa, tssa_naive


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], normalize: bool, masked: bool) -> None:
    compare(
        lambda w, eta, mask: tssa(w, eta, normalize, mask),
        lambda w, eta, mask: tssa_naive(w, eta, normalize, mask),
        draw(*size),
        draw(size[1]),
        mask=padding(size[2]) if masked else None,
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("convention", ["paper", "reference"])
@pytest.mark.parametrize("masked", [False, True])
def test_causal_equals_naive(size: tuple[int, ...], normalize: bool, convention: Convention, masked: bool) -> None:
    n = size[2]

    def fast(w: Tensor, eta: Tensor, bias: Tensor, mask: Tensor | None) -> Tensor:
        positions = torch.arange(n)[None] if mask is None else (mask.long().cumsum(-1) - 1).clamp(min=0)
        return causal_tssa(w, eta, bias[:, positions].transpose(0, 1)[..., None], normalize, convention, mask)[0]

    compare(
        fast,
        lambda w, eta, bias, mask: causal_tssa_naive(w, eta, bias, normalize, convention, mask),
        draw(*size),
        draw(size[1]),
        draw(size[1], n),
        mask=padding(n) if masked else None,
    )


def test_survives_a_silent_feature() -> None:
    w = draw(1, 2, 5, 3)
    w[..., 0] = 0
    w.requires_grad_()
    out = tssa(w, torch.ones(2, dtype=torch.float64))
    out.sum().backward()
    assert out.isfinite().all()
    assert w.grad is not None
    assert w.grad.isfinite().all()
