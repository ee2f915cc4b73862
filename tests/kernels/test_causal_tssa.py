"""Causal TSSA equals its equations token by token, and what is fast equals what is plain where that takes too long."""

from __future__ import annotations

import pytest
from against_naive import SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.kernels.causal_tssa.equations import Convention, causal_tssa_naive, causal_tssa_plain
from kattn_cli.kernels.causal_tssa.operator import causal_tssa


@pytest.mark.usefixtures("each_version")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("convention", ["paper", "reference"])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], normalize: bool, convention: Convention, masked: bool) -> None:
    n = size[2]

    def fast(w: Tensor, eta: Tensor, bias: Tensor, mask: Tensor | None) -> Tensor:
        return causal_tssa(w, eta, of_tokens(bias, mask), normalize, convention, mask)

    compare(
        fast,
        lambda w, eta, bias, mask: causal_tssa_naive(w, eta, of_tokens(bias, mask), normalize, convention, mask),
        draw(*size),
        draw(size[1]),
        draw(size[1], n),
        mask=padding(n) if masked else None,
    )


@pytest.mark.parametrize("each_version", ["fast"], indirect=True)
@pytest.mark.parametrize("size", [(3, 8, 130, 48), (1, 3, 4097, 5)])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("convention", ["paper", "reference"])
def test_kernel_equals_plain(each_version: str, size: tuple[int, ...], normalize: bool, convention: Convention) -> None:
    eta, bias = draw(size[1]), draw(1, size[1], size[2], 1)
    compare(
        lambda w, e, b, mask: causal_tssa(w, e, b, normalize, convention, mask),
        lambda w, e, b, mask: causal_tssa_plain(w, e, b, normalize, convention, mask)[0],
        draw(*size),
        eta,
        bias,
        mask=None,
    )


@pytest.mark.usefixtures("each_version")
def test_silent_features() -> None:
    """Before a feature's first token that is not 0, and where it never is, its running norm is clamped."""
    w = draw(2, 2, 70, 3)
    w[..., 0] = 0
    w[..., :20, 1] = 0
    compare(
        lambda w, e, b, mask: causal_tssa(w, e, of_tokens(b, mask), True, "paper", mask),
        lambda w, e, b, mask: causal_tssa_naive(w, e, of_tokens(b, mask), True, "paper", mask),
        w,
        draw(2),
        draw(2, 70),
        mask=None,
    )


def of_tokens(bias: Tensor, mask: Tensor | None) -> Tensor:
    """From each position's, ``(H, N)``, to each token's, ``(B or 1, H, N, 1)``."""
    if mask is None:
        return bias[None, ..., None]
    return bias[:, (mask.long().cumsum(-1) - 1).clamp(min=0)].transpose(0, 1)[..., None]
