"""Elastic transform, one image at a time with scipy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.ndimage
import torch

from kattn_cli.data.corruptions.elastic import Elastic, ElasticDraws, affine_positions, elastic_transform


def plain_elastic(image: np.ndarray, parameters: Elastic, draws: ElasticDraws) -> np.ndarray:
    height, width, _ = image.shape
    side = min(height, width)
    middle, square = np.array([width // 2, height // 2]), side // 3
    old = middle + square * np.array([[1, 1], [1, -1], [-1, -1]])
    new = old + parameters.shift * side * draws.corners.numpy()
    forth = np.linalg.solve(np.c_[old, np.ones(3)], new)
    y, x = np.mgrid[:height, :width]
    from_x, from_y = np.linalg.inv(forth[:2].T) @ (np.stack([x.ravel(), y.ravel()]) - forth[2][:, None])
    result = _sampled(image / 255, from_y, from_x, "mirror")
    right, down = (
        scipy.ndimage.gaussian_filter(field, parameters.sigma * side, mode="reflect", truncate=3)
        * parameters.strength
        * side
        for field in draws.field.numpy()
    )
    result = _sampled(result, (y + down).ravel(), (x + right).ravel(), "reflect")
    return 255 * result


def _sampled(image: np.ndarray, y: np.ndarray, x: np.ndarray, mode: str) -> np.ndarray:
    channels = [scipy.ndimage.map_coordinates(c, [y, x], order=1, mode=mode) for c in np.moveaxis(image, -1, 0)]
    return np.stack(channels, -1).reshape(image.shape)


def test_elastic_transform(check: Callable[..., None]) -> None:
    check("elastic_transform", plain_elastic)


def test_no_shift_and_no_strength_change_nothing(pictures_of: Callable[..., torch.Tensor]) -> None:
    images = pictures_of(2, 3, 11, 16)
    draws = ElasticDraws(torch.rand(2, 3, 2).double(), torch.rand(2, 2, 11, 16).double())
    torch.testing.assert_close(elastic_transform(images, Elastic(0, 0, 0), draws), images, rtol=0, atol=1e-6)


def test_corners_go_where_they_are_sent() -> None:
    """The pixel where a corner arrives shows what was at the corner: (x, y) = (21, 16), (21, 4), (9, 4) for 20 × 30."""
    shifts = torch.tensor([[[2.0, -1], [3, 2], [-4, 1]]]).double()
    x, y = affine_positions(shifts, 20, 30)
    found = [
        (round(float(x[0, row, column]), 9), round(float(y[0, row, column]), 9))
        for row, column in [(15, 23), (6, 24), (5, 5)]
    ]
    assert found == [(21, 16), (21, 4), (9, 4)]
