"""Defocus, motion and zoom blur, one image at a time with scipy and loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import scipy.ndimage
import torch
from torch import Tensor

from kattn_cli.data.corruptions.blur import Disk, Motion, moved, zoomed


def plain_defocus(image: np.ndarray, parameters: Disk, draws: None) -> np.ndarray:
    radius, sigma = parameters
    reach, soft = (8, 1) if radius <= 8 else (int(radius), 2)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    kernel = (x**2 + y**2 <= radius**2) / np.sum(x**2 + y**2 <= radius**2)
    weights = np.exp(-(np.arange(-soft, soft + 1) ** 2) / (2 * sigma**2))
    for axis in (0, 1):
        kernel = scipy.ndimage.correlate1d(kernel, weights / weights.sum(), axis, mode="mirror")
    blurred = [scipy.ndimage.correlate(channel / 255, kernel, mode="mirror") for channel in np.moveaxis(image, -1, 0)]
    return 255 * np.stack(blurred, -1)


def test_defocus_blur(check: Callable[..., None]) -> None:
    check("defocus_blur", plain_defocus)


def plain_moved(image: np.ndarray, motion: Motion, degrees: float) -> np.ndarray:
    """Step by step along the angle, each to the nearest pixel; beyond the border the outermost goes on."""
    height, width, _ = image.shape
    weights = [math.exp(-(i**2) / (2 * motion.sigma**2)) for i in range(2 * motion.radius + 1)]
    angle = math.radians(degrees)
    blurred = np.zeros(image.shape)
    for i, weight in enumerate(weights):
        rows = np.clip(np.arange(height) + math.ceil(i * math.sin(angle) - 0.5), 0, height - 1)
        columns = np.clip(np.arange(width) + math.ceil(i * math.cos(angle) - 0.5), 0, width - 1)
        blurred += weight / sum(weights) * image[rows][:, columns]
    return blurred


def plain_motion(image: np.ndarray, motion: Motion, draws: Tensor) -> np.ndarray:
    return np.round(plain_moved(image, motion, float(draws)))


def test_motion_blur(check: Callable[..., None]) -> None:
    check("motion_blur", plain_motion, rounds_inside=True)


@pytest.mark.parametrize(
    ("degrees", "down", "right"), [(0, 0, 1), (90, 1, 0), (-90, -1, 0), (45, 1, 1), (-135, -1, -1)]
)
def test_motion_looks_along_its_angle(degrees: float, down: int, right: int) -> None:
    """A point shows up against the angle's direction, y pointing down, with half a Gaussian's weights.

    At 45° the first two steps are to the same pixel.
    """
    image = torch.zeros(1, 1, 41, 41)
    image[..., 20, 20] = 1
    blurred = moved(image, Motion(3, 2), torch.tensor([float(degrees)]).double())[0, 0]
    weights = np.exp(-0.5 * (np.arange(7) / 2) ** 2)
    assert float(blurred[20, 20]) == pytest.approx(weights[0] / weights.sum())
    seen = blurred[20 - down, 20 - right]
    expected = weights[1] / weights.sum() if 0 in (down, right) else weights[1:3].sum() / weights.sum()
    assert float(seen) == pytest.approx(expected, rel=1e-5)
    assert float(blurred[20 + down, 20 + right]) == 0
    assert float(blurred.sum()) == pytest.approx(1, rel=1e-6)


def plain_zoom(image: np.ndarray, factors: Sequence[float], draws: None) -> np.ndarray:
    total = image / 255
    for factor in factors:
        total = total + plain_zoomed(image / 255, factor)
    return 255 * total / (len(factors) + 1)


def plain_zoomed(image: np.ndarray, factor: float) -> np.ndarray:
    height, width, _ = image.shape
    tall, wide = (int(np.ceil(side / factor)) for side in (height, width))
    top, left = (height - tall) // 2, (width - wide) // 2
    large = scipy.ndimage.zoom(image[top : top + tall, left : left + wide], (factor, factor, 1), order=1)
    top, left = (large.shape[0] - height) // 2, (large.shape[1] - width) // 2
    return large[top : top + height, left : left + width]


def test_zoom_blur(check: Callable[..., None]) -> None:
    check("zoom_blur", plain_zoom)


@pytest.mark.parametrize("factor", [1.0, 1.03, 1.25, 1.75, 2.25, 2.5, 3.0, 4.0, 4.5])
@pytest.mark.parametrize("size", [8, 28, 33])
def test_zoom_is_scipys(factor: float, size: int) -> None:
    image = np.random.default_rng(0).random((size, size + 5, 1))
    found = zoomed(torch.from_numpy(image).permute(2, 0, 1)[None], factor)
    np.testing.assert_allclose(found[0, 0].numpy(), plain_zoomed(image, factor)[..., 0], atol=1e-12)
