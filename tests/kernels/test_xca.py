"""XCA with the norms divided out of the d × d product equals its equation."""

from __future__ import annotations

import pytest
from against_naive import SIZES, compare, draw, padding

from kattn_cli.kernels import xca as module
from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.xca import xca, xca_naive


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(size: tuple[int, ...], masked: bool) -> None:
    inputs = [draw(*size), draw(*size), draw(*size), draw(size[1])]
    compare(xca, xca_naive, *inputs, mask=padding(size[2]) if masked else None)


def test_slow_is_the_equation(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = (draw(2, 3, 7, 5), draw(2, 3, 7, 5), draw(2, 3, 7, 5), draw(3), padding(7))
    monkeypatch.setattr(module, "cross_covariance", None)
    with operators("slow"):
        assert xca(*inputs).equal(xca_naive(*inputs))
