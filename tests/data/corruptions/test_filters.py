"""Filters against numpy's padding and scipy's filters, with kernels wider than the image among them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import torch

from kattn_cli.data.corruptions.filters import Border, correlate, disk, edge, mirror, reflect, smooth

BORDERS = [(edge, "edge", "nearest"), (mirror, "reflect", "mirror"), (reflect, "symmetric", "reflect")]


@pytest.mark.parametrize(("border", "numpys", "scipys"), BORDERS)
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_borders_are_numpys(border: Border, numpys: str, scipys: str, size: int) -> None:
    found = border(torch.arange(-40, size + 40), size)
    assert found.tolist() == np.pad(np.arange(size), 40, mode=numpys).tolist()  # type: ignore[call-overload]


@pytest.mark.parametrize(("border", "numpys", "scipys"), BORDERS)
@pytest.mark.parametrize("sigma", [0, 0.05, 0.25, 0.4, 1.5, 5.0, 40.0])
@pytest.mark.parametrize("truncate", [3.0, 4.0])
def test_gaussian_is_scipys(border: Border, numpys: str, scipys: str, sigma: float, truncate: float) -> None:
    image = np.random.default_rng(0).random((9, 14))
    expected = scipy.ndimage.gaussian_filter(image, sigma, mode=scipys, truncate=truncate)
    found = smooth(torch.from_numpy(image), sigma, truncate, border)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-13)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (9, 30), (40, 33)])
@pytest.mark.parametrize("side", [17, 21])
def test_correlation_is_scipys(height: int, width: int, side: int) -> None:
    rng = np.random.default_rng(0)
    image, kernel = rng.random((height, width)), rng.random((side, side))
    found = correlate(torch.from_numpy(image), torch.from_numpy(kernel))
    np.testing.assert_allclose(found.numpy(), scipy.ndimage.correlate(image, kernel, mode="mirror"), atol=1e-11)


def test_disk_by_hand() -> None:
    """Of radius 1: a cross of five, each neighbour taking w = e^(−1/2σ²) / (1 + 2 e^(−1/2σ²)) along each axis."""
    share = np.exp(-0.5 / 0.5**2)
    side, middle = share / (1 + 2 * share), 1 / (1 + 2 * share)
    kernel = disk(1, 0.5)
    assert kernel.shape == (17, 17)
    assert float(kernel[8, 8]) == pytest.approx((middle**2 + 4 * middle * side) / 5)
    assert float(kernel[8, 9]) == pytest.approx((middle**2 + middle * side + 2 * side**2) / 5)
    assert float(kernel[8, 10]) == pytest.approx(middle * side / 5)
    assert float(kernel.sum()) == pytest.approx(1)
    assert disk(10, 0.5).shape == (21, 21)
